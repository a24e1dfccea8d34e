import LarkspurHTTP

/// The serialized fields of requests to one origin: of requests that set no fields, and of the latest request that set
/// some. Most programs send equal fields in all their requests. It belongs to the loop's thread.
package final class HeadCache {
  /// The serialized fields of a request that sets no fields.
  private var bareFields: SerializedFields?
  private var latest: (fields: FieldList, serialized: SerializedFields?) = ([], nil)
  /// The latest complete head of a request that sets no fields, because many programs load one URL again and again.
  private var bareTarget: LoadTarget?
  private var latestHead: RequestHead?

  package init() {}

  /// Returns the head of a GET without custom fields, if the latest such request was for this target.
  func bareHead(to target: LoadTarget) -> RequestHead? {
    bareTarget === target ? latestHead : nil
  }

  func store(_ head: RequestHead, to target: LoadTarget) { (bareTarget, latestHead) = (target, head) }

  /// Returns the serialized fields of a request.
  ///
  /// - Parameters:
  ///   - fields: The request's own fields.
  ///   - write: Serializes the fields, or returns `nil` if they cannot be sent. Called for a request without fields,
  ///     and for the second request in a row with equal fields: only then is serializing them once worth the work.
  /// - Returns: `nil` if the fields have to be written for this request alone.
  func serializedFields(for fields: FieldList, _ write: () -> SerializedFields?) -> SerializedFields? {
    if fields.isEmpty {
      if bareFields == nil { bareFields = write() }
      return bareFields
    }
    guard latest.fields == fields else {
      latest = (fields, nil)
      return nil
    }
    if latest.serialized == nil { latest.serialized = write() }
    return latest.serialized
  }
}
