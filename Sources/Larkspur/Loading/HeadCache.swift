import LarkspurHTTP

/// The serialized fields of requests to one origin: of requests that set no fields, and of the latest request that set
/// some. Most programs send equal fields in all their requests. It belongs to the loop's thread.
final class HeadCache {
  private var commonOfBareRequests: CommonFields?
  private var latest: (fields: [RequestFields.Field], common: CommonFields?) = ([], nil)
  /// The latest complete head, because many programs load one URL again and again.
  private var latestBareTarget: LoadTarget?
  private var latestBareHead: RequestHead?

  /// Returns the head of a GET without fields of its own, if the latest such request was for this target.
  func bareHead(to target: LoadTarget) -> RequestHead? {
    latestBareTarget === target ? latestBareHead : nil
  }

  func store(_ head: RequestHead, to target: LoadTarget) { (latestBareTarget, latestBareHead) = (target, head) }

  /// Returns the serialized fields of a request.
  ///
  /// - Parameters:
  ///   - fields: The request's own fields.
  ///   - write: Serializes the fields, or returns `nil` if they cannot be sent. Called for a request without fields,
  ///     and for the second request in a row with equal fields: only then is serializing them once worth the work.
  /// - Returns: `nil` if the fields have to be written for this request alone.
  func common(for fields: [RequestFields.Field], _ write: () -> CommonFields?) -> CommonFields? {
    if fields.isEmpty {
      if commonOfBareRequests == nil { commonOfBareRequests = write() }
      return commonOfBareRequests
    }
    guard Self.areEqual(latest.fields, fields) else {
      latest = (fields, nil)
      return nil
    }
    if latest.common == nil { latest.common = write() }
    return latest.common
  }

  private static func areEqual(_ one: [RequestFields.Field], _ other: [RequestFields.Field]) -> Bool {
    guard one.count == other.count else { return false }
    for index in one.indices where one[index].value != other[index].value || one[index].name != other[index].name {
      return false
    }
    return true
  }
}
