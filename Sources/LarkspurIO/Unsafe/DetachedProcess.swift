import Glibc
import LarkspurBytes

/// Programs that run on after their starter.
public enum DetachedProcess {
  /// Starts a program in a new session, with `/` as its working directory, its standard streams on `/dev/null` and no
  /// other descriptors. The program is no child of this process. Blocks until the program runs, a few milliseconds.
  ///
  /// - Parameters:
  ///   - path: The program's path. `PATH` is not searched.
  ///   - arguments: The words after the program's name.
  ///   - kept: The variables of this process's environment that the program gets, or `nil` for all.
  ///   - environment: Variables that are added to this process's environment, or replace some of it.
  /// - Throws: `invalidArgument` for a text with a NUL, and the errors of `execve`.
  public static func start(
    _ path: String, _ arguments: [String], keeping kept: Set<String>? = nil, environment: [String: String] = [:]
  ) throws(Errno) {
    // Safe: there is no pointer.
    try unsafe start(path, arguments, keeping: kept, environment: environment, life: nil)
  }

  /// Starts a program as `start` does, and watches its life. The program has one more descriptor, to which it need not
  /// pay attention.
  ///
  /// - Returns: The life of the program, and of all programs that it has started with that descriptor.
  /// - Throws: `invalidArgument` for a text with a NUL, and the errors of `execve`.
  public static func startWatched(
    _ path: String, _ arguments: [String], keeping kept: Set<String>? = nil, environment: [String: String] = [:]
  ) throws(Errno) -> ProgramLife {
    var life: Int32 = -1
    // Safe: the call writes one number.
    try unsafe start(path, arguments, keeping: kept, environment: environment, life: &life)
    return ProgramLife(try OpenFile(opened: life))
  }

  @unsafe
  private static func start(
    _ path: String, _ arguments: [String], keeping kept: Set<String>?, environment: [String: String],
    life: UnsafeMutablePointer<Int32>?
  ) throws(Errno) {
    let argumentList = [path] + arguments
    let variables = Self.environment(with: environment, keeping: kept)
    guard !(argumentList + variables).contains(where: { $0.utf8.contains(0) }) else { throw .invalidArgument }
    let error = unsafe withPointers(argumentList) { argumentList in
      // Safe: both lists end with a null pointer and live as long as the call, like the strings in them.
      unsafe withPointers(variables) { unsafe larkspur_start_detached(path, argumentList, $0, life) }
    }
    guard error == 0 else { throw Errno(rawValue: error) }
  }

  private static func environment(with added: [String: String], keeping kept: Set<String>?) -> [String] {
    let variables = EnvironmentVariable.entries.filter { variable in
      let name = String(variable.prefix { $0 != "=" })
      return added[name] == nil && kept?.contains(name) != false
    }
    return variables + added.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
  }

  /// Calls `body` with a list of C strings that ends with a null pointer.
  @unsafe
  private static func withPointers<R>(
    _ texts: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
  ) -> R {
    var pointers = unsafe texts.map { unsafe strdup($0) } + [nil]
    // Safe: `strdup` allocates each string, which is freed once here.
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return unsafe withUnsafePointer(to: nil) { unsafe body($0) } }
      return unsafe body(UnsafePointer(base))
    }
  }
}

/// The life of a program that runs on after its starter.
public final class ProgramLife: Sendable {
  private let pipe: OpenFile

  fileprivate init(_ pipe: OpenFile) { self.pipe = pipe }

  /// Waits until the program has ended.
  ///
  /// - Returns: `false` if the program runs at the deadline, or if the kernel cannot wait.
  public func waitForEnd(until deadline: Deadline) -> Bool {
    (try? EventWait.until(deadline, event: POLLIN, of: pipe.number)) ?? false
  }
}

/// The user on whose behalf the process runs.
public enum ProcessUser {
  public static var effective: UInt32 { geteuid() }
}
