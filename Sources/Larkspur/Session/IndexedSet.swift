/// A member of an `IndexedSet`. The member stores its own index, so that removal needs no search.
protocol IndexedSetMember: AnyObject {
  /// The index in the list, or `nil` if the member is on no list.
  var indexInSet: Int? { get set }
}

extension URLSessionTask: IndexedSetMember {}

extension Load: IndexedSetMember {}

/// The tasks or loads of a session that are not over. The session's lock guards the list.
struct IndexedSet<Member: IndexedSetMember> {
  private(set) var members: [Member] = []

  mutating func insert(_ member: Member) {
    guard member.indexInSet == nil else { return }
    member.indexInSet = members.count
    members.append(member)
  }

  /// Removes a member in constant time: the last member moves to the free index.
  mutating func remove(_ member: Member) {
    guard let index = member.indexInSet else { return }
    member.indexInSet = nil
    let last = members.removeLast()
    guard last !== member else { return }
    members[index] = last
    last.indexInSet = index
  }
}
