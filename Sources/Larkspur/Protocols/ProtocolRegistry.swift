import Synchronization

/// The protocol classes that are registered in the process. Thread-safe.
enum ProtocolRegistry {
  private static let registered = Mutex<[URLProtocol.Type]>([])
  /// The number of classes. In a program without protocols a load reads nothing but this number.
  ///
  /// Memory order: `classes` reads the array under its lock, so this number only decides whether to look. The release
  /// store in `register` and `unregister` pairs with the acquiring load in `isEmpty`.
  private static let count = Atomic(0)

  static var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

  /// The classes, the last registered first.
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
