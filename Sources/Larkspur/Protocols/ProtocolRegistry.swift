import Synchronization

/// The protocol classes of the process. For any thread.
enum ProtocolRegistry {
  private static let registered = Mutex<[URLProtocol.Type]>([])
  /// How many there are. A load in a program without protocols looks at this and at nothing else.
  private static let count = Atomic(0)

  static var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  /// The last one first.
  static var classes: [URLProtocol.Type] { registered.withLock { $0.reversed() } }

  static func register(_ candidate: AnyClass) -> Bool {
    guard let type = candidate as? URLProtocol.Type else { return false }
    registered.withLock { classes in
      classes.removeAll { $0 == type }
      classes.append(type)
      count.store(classes.count, ordering: .releasing)
    }
    return true
  }

  static func unregister(_ candidate: AnyClass) {
    registered.withLock { classes in
      classes.removeAll { $0 == candidate }
      count.store(classes.count, ordering: .releasing)
    }
  }
}
