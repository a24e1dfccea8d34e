/// What is on a list, and knows its place there: it is not looked for.
protocol Listed: AnyObject {
  /// Nil: it is on none.
  var place: Int? { get set }
}

extension URLSessionTask: Listed {}

extension Transfer: Listed {}

/// What is not over of a session's. It is guarded by the session's lock.
struct PlaceList<Member: Listed> {
  private(set) var members: [Member] = []

  mutating func insert(_ member: Member) {
    guard member.place == nil else { return }
    member.place = members.count
    members.append(member)
  }

  /// The last one takes the free place.
  mutating func remove(_ member: Member) {
    guard let place = member.place else { return }
    member.place = nil
    let last = members.removeLast()
    guard last !== member else { return }
    members[place] = last
    last.place = place
  }
}
