import Glibc

/// The variables of the process's environment.
///
/// A program that runs with other rights than its caller (setuid, setgid or file capabilities: `AT_SECURE` of
/// getauxval(3)) has none: the caller could name files and programs that only the program may use.
public enum EnvironmentVariable {
  public static func value(of name: String) -> String? {
    // Safe: the string is copied at once, and this package never changes the environment.
    guard let value = unsafe larkspur_environment_value(name) else { return nil }
    return unsafe String(cString: value)
  }

  /// All variables. Of two with one name, the first one counts, as in getenv(3).
  public static var all: [String: String] {
    guard larkspur_is_privileged() == 0 else { return [:] }
    var variables: [String: String] = [:]
    for entry in entries {
      guard let end = entry.firstIndex(of: "=") else { continue }
      let name = String(entry[..<end])
      if variables[name] == nil { variables[name] = String(entry[entry.index(after: end)...]) }
    }
    return variables
  }

  /// The environment as it is, for a program to be started.
  static var entries: [String] {
    var entries: [String] = []
    // Safe: the list ends with a null pointer, and this package never changes the environment.
    var entry = unsafe larkspur_environment()
    while let text = unsafe entry?.pointee {
      entries.append(unsafe String(cString: text))
      unsafe entry = entry?.advanced(by: 1)
    }
    return entries
  }
}
