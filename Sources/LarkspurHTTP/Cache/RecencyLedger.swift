/// Keys with their costs, in the order of their last use.
///
/// Each operation takes constant time: the order is a doubly linked list in an array.
public struct RecencyLedger<Key: Hashable & Sendable>: Sendable {
  private struct Link: Sendable {
    var key: Key
    var cost: Int
    var older: Int
    var newer: Int
  }

  private var links: [Link] = []
  private var places: [Key: Int] = [:]
  private var unused: [Int] = []
  /// The index of the oldest link, or -1 if there is none.
  private var oldestPlace = -1
  private var newestPlace = -1
  /// The sum of all costs.
  public private(set) var cost = 0

  public init() {}

  public var count: Int { places.count }

  public var isEmpty: Bool { places.isEmpty }

  public var oldest: Key? { oldestPlace < 0 ? nil : links[oldestPlace].key }

  public var keys: some Sequence<Key> { places.keys }

  public func contains(_ key: Key) -> Bool { places[key] != nil }

  /// Returns the cost of a key, or `nil` if there is no such key.
  public func cost(of key: Key) -> Int? { places[key].map { links[$0].cost } }

  /// Adds a key, or changes its cost, and makes it the newest.
  public mutating func insert(_ key: Key, cost: Int) {
    remove(key)
    let link = Link(key: key, cost: cost, older: newestPlace, newer: -1)
    let place: Int
    if let free = unused.popLast() {
      place = free
      links[place] = link
    } else {
      place = links.count
      links.append(link)
    }
    if newestPlace >= 0 { links[newestPlace].newer = place } else { oldestPlace = place }
    newestPlace = place
    places[key] = place
    self.cost += cost
  }

  /// Makes the key the newest.
  public mutating func touch(_ key: Key) {
    guard let place = places[key], place != newestPlace else { return }
    insert(key, cost: links[place].cost)
  }

  @discardableResult public mutating func remove(_ key: Key) -> Bool {
    guard let place = places.removeValue(forKey: key) else { return false }
    let link = links[place]
    if link.older >= 0 { links[link.older].newer = link.newer } else { oldestPlace = link.newer }
    if link.newer >= 0 { links[link.newer].older = link.older } else { newestPlace = link.older }
    unused.append(place)
    cost -= link.cost
    return true
  }
}
