@_implementationOnly import CLarkspurLinux

public enum EnvironmentVariable {
  public static func value(of name: String) -> String? {
    // Safe: the string is copied at once, and this package never changes the environment.
    guard let value = unsafe getenv(name) else { return nil }
    return unsafe String(cString: value)
  }
}
