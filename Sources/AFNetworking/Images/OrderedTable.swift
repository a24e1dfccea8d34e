/// Values by keys, in an order that the owner determines. Each operation takes constant time, regardless of the number
/// of keys, except where memory grows.
struct OrderedTable<Key: Hashable, Value> {
  /// An element, linked with its neighbours by their positions in `nodes`.
  private struct Node {
    var element: (key: Key, value: Value)?
    var previous: Int?
    var next: Int?
  }

  private var nodes: [Node] = []
  private var unused: [Int] = []
  private var positions: [Key: Int] = [:]
  private var front: Int?
  private var back: Int?

  var count: Int { positions.count }

  var first: (key: Key, value: Value)? { front.flatMap { nodes[$0].element } }

  /// The values in their order. Takes time in proportion to their number.
  var values: [Value] {
    var values: [Value] = []
    var position = front
    while let current = position {
      if let element = nodes[current].element { values.append(element.value) }
      position = nodes[current].next
    }
    return values
  }

  /// The value of a key. Reading it leaves the order as it is.
  subscript(_ key: Key) -> Value? { positions[key].flatMap { nodes[$0].element?.value } }

  /// Sets a value, and makes its key the last one.
  ///
  /// - Returns: The key's previous value.
  @discardableResult
  mutating func append(_ key: Key, _ value: Value) -> Value? {
    let old = remove(key)
    let position = place(key, value)
    nodes[position].previous = back
    if let back { nodes[back].next = position } else { front = position }
    back = position
    return old
  }

  /// Sets a value, and makes its key the first one.
  ///
  /// - Returns: The key's previous value.
  @discardableResult
  mutating func prepend(_ key: Key, _ value: Value) -> Value? {
    let old = remove(key)
    let position = place(key, value)
    nodes[position].next = front
    if let front { nodes[front].previous = position } else { back = position }
    front = position
    return old
  }

  /// Makes a key the last one, if it is in the table.
  ///
  /// - Returns: The key's value.
  @discardableResult
  mutating func moveToBack(_ key: Key) -> Value? {
    guard let value = remove(key) else { return nil }
    append(key, value)
    return value
  }

  @discardableResult
  mutating func remove(_ key: Key) -> Value? {
    guard let position = positions.removeValue(forKey: key) else { return nil }
    let node = nodes[position]
    if let previous = node.previous { nodes[previous].next = node.next } else { front = node.next }
    if let next = node.next { nodes[next].previous = node.previous } else { back = node.previous }
    nodes[position] = Node()
    unused.append(position)
    return node.element?.value
  }

  mutating func popFirst() -> (key: Key, value: Value)? {
    guard let first else { return nil }
    remove(first.key)
    return first
  }

  private mutating func place(_ key: Key, _ value: Value) -> Int {
    let node = Node(element: (key, value))
    let position: Int
    if let free = unused.popLast() {
      nodes[free] = node
      position = free
    } else {
      nodes.append(node)
      position = nodes.count - 1
    }
    positions[key] = position
    return position
  }
}
