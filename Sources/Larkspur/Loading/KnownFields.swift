import LarkspurHTTP

/// The fields of requests to one origin as they are sent, of those that set none themselves and of the latest one that did:
/// most programs say the same in all of their requests. It belongs to the loop's thread.
final class KnownFields {
  private var ofBareRequests: CommonFields?
  private var latest: (fields: [RequestFields.Field], common: CommonFields?) = ([], nil)
  /// The latest whole head: many programs ask for the same again and again.
  private var latestBareTarget: LoadTarget?
  private var latestBareHead: RequestHead?

  /// The head of a GET that has nothing of its own, if the latest one was for the same target.
  func bareHead(to target: LoadTarget) -> RequestHead? {
    latestBareTarget === target ? latestBareHead : nil
  }

  func keep(_ head: RequestHead, to target: LoadTarget) { (latestBareTarget, latestBareHead) = (target, head) }

  /// - Parameters:
  ///   - fields: The request's own.
  ///   - write: Is called for a bare request, and for the second one in a row that has these fields: from then on it is
  ///     worth the work to write them once for all. Nil: they cannot be sent.
  func common(for fields: [RequestFields.Field], _ write: () -> CommonFields?) -> CommonFields? {
    if fields.isEmpty {
      if ofBareRequests == nil { ofBareRequests = write() }
      return ofBareRequests
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
