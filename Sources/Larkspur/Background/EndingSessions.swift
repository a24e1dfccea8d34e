import Synchronization

/// The background sessions of this process that have been invalidated and have not given their identifiers up.
///
/// A program may make a session again at once. The new session then waits for the earlier one, whose delegate calls may
/// come on the thread that makes the new one.
enum EndingSessions {
  private static let directories = Mutex<[String: Int]>([:])

  static func add(_ directory: String) { directories.withLock { $0[directory, default: 0] += 1 } }

  static func remove(_ directory: String) {
    directories.withLock { directories in
      let count = (directories[directory] ?? 1) - 1
      directories[directory] = count > 0 ? count : nil
    }
  }

  static func count(_ directory: String) -> Int { directories.withLock { $0[directory] ?? 0 } }
}
