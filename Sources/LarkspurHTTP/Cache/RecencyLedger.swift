/// Keys with their costs, in the order of their last use.
///
/// Each operation takes constant time: the order is a doubly linked list in an array. Performance: inlinable, because
/// code for any key looks up the key's hash at run time.
public struct RecencyLedger<Key: Hashable & Sendable>: Sendable {
  @usableFromInline struct Link: Sendable {
    @usableFromInline var key: Key
    @usableFromInline var cost: Int
    @usableFromInline var older = -1
    @usableFromInline var newer = -1

    @inlinable init(_ key: Key, cost: Int) {
      self.key = key
      self.cost = cost
    }
  }

  @usableFromInline var links: [Link] = []
  @usableFromInline var indexes: [Key: Int] = [:]
  @usableFromInline var unused: [Int] = []
  /// The index of the oldest link, or -1 if there is none.
  @usableFromInline var oldestIndex = -1
  @usableFromInline var newestIndex = -1
  /// The sum of all costs.
  public var cost: Int { costSum }
  @usableFromInline var costSum = 0

  public init() {}

  public var count: Int { indexes.count }

  public var isEmpty: Bool { indexes.isEmpty }

  @inlinable public var oldest: Key? { oldestIndex < 0 ? nil : links[oldestIndex].key }

  public var keys: some Sequence<Key> { indexes.keys }

  @inlinable public func contains(_ key: Key) -> Bool { indexes[key] != nil }

  /// Returns the cost of a key, or `nil` if there is no such key.
  public func cost(of key: Key) -> Int? { indexes[key].map { links[$0].cost } }

  /// Adds a key, or changes its cost, and makes it the newest.
  @inlinable public mutating func insert(_ key: Key, cost: Int) {
    if let index = indexes[key] {
      unlink(index)
      links[index].cost = cost
      linkNewest(index)
    } else {
      let index = unused.popLast() ?? links.count
      if index == links.count { links.append(Link(key, cost: cost)) } else { links[index] = Link(key, cost: cost) }
      indexes[key] = index
      linkNewest(index)
    }
  }

  /// Makes the key the newest.
  @inlinable public mutating func touch(_ key: Key) {
    guard let index = indexes[key], index != newestIndex else { return }
    unlink(index)
    linkNewest(index)
  }

  @inlinable
  @discardableResult public mutating func remove(_ key: Key) -> Bool {
    guard let index = indexes.removeValue(forKey: key) else { return false }
    unlink(index)
    unused.append(index)
    return true
  }

  /// Takes a link out of the list, and its cost out of the sum.
  @inlinable mutating func unlink(_ index: Int) {
    let (older, newer) = (links[index].older, links[index].newer)
    if older >= 0 { links[older].newer = newer } else { oldestIndex = newer }
    if newer >= 0 { links[newer].older = older } else { newestIndex = older }
    costSum -= links[index].cost
  }

  /// Puts a link at the end of the list, and adds its cost to the sum.
  @inlinable mutating func linkNewest(_ index: Int) {
    links[index].older = newestIndex
    links[index].newer = -1
    if newestIndex >= 0 { links[newestIndex].newer = index } else { oldestIndex = index }
    newestIndex = index
    costSum += links[index].cost
  }
}
