/// A member of a `IndexedSet`. The member stores its own index, so that removal needs no search.
protocol Listed: AnyObject {
  /// The index in the list, or `nil` if the member is on no list.
  var place: Int? { get set }
}

extension URLSessionTask: Listed {}

extension Transfer: Listed {}

/// The tasks or loads of a session that are not over. The session's lock guards the list.
struct IndexedSet<Member: Listed> {
  private(set) var members: [Member] = []

  mutating func insert(_ member: Member) {
    guard member.place == nil else { return }
    member.place = members.count
    members.append(member)
  }

  /// Removes a member in constant time: the last member moves to the free index.
  mutating func remove(_ member: Member) {
    guard let place = member.place else { return }
    member.place = nil
    let last = members.removeLast()
    guard last !== member else { return }
    members[place] = last
    last.place = place
  }
}
