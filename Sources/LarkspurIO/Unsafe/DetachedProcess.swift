@_implementationOnly import CLarkspurLinux

/// Programs that run on after their starter.
public enum DetachedProcess {
  /// Starts a program in a session of its own, with `/` as its working directory, its standard streams on `/dev/null`
  /// and no other descriptors. The program is no child of this process. Blocks until the program runs, a few
  /// milliseconds.
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
    let argumentList = [path] + arguments
    let variables = Self.environment(with: environment, keeping: kept)
    guard !(argumentList + variables).contains(where: { $0.utf8.contains(0) }) else { throw .invalidArgument }
    let error = unsafe withPointers(argumentList) { argumentList in
      // Safe: both lists end with a null pointer and live as long as the call, like the strings in them.
      unsafe withPointers(variables) { unsafe larkspur_start_detached(path, argumentList, $0) }
    }
    guard error == 0 else { throw Errno(rawValue: error) }
  }

  private static func environment(with added: [String: String], keeping kept: Set<String>?) -> [String] {
    var variables: [String] = []
    // Safe: the list ends with a null pointer, and this package never changes the environment.
    var entry = unsafe larkspur_environment()
    while let text = unsafe entry?.pointee {
      let variable = unsafe String(cString: text)
      let name = variable.prefix { $0 != "=" }
      if added[String(name)] == nil, kept?.contains(String(name)) != false { variables.append(variable) }
      unsafe entry = entry?.advanced(by: 1)
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

/// The user on whose behalf the process runs.
public enum ProcessUser {
  public static var effective: UInt32 { larkspur_effective_user() }
}
