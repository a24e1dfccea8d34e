/// The places of the system's roots.
public struct RootPlaces: Hashable, Sendable {
  /// The file, or `nil` for OpenSSL's own.
  public var file: String?
  /// The directories, which colons separate, or `nil` for OpenSSL's own.
  public var directories: String?

  public init(file: String?, directories: String?) {
    self.file = file
    self.directories = directories
  }

  /// The places that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
  public static var ofEnvironment: RootPlaces {
    // Safe: the texts are copied at once. As always with getenv, no thread may change the environment meanwhile.
    unsafe RootPlaces(file: text(larkspur_named_root_file()), directories: text(larkspur_named_root_folders()))
  }

  @unsafe
  private static func text(_ value: UnsafePointer<CChar>?) -> String? {
    guard let value = unsafe value else { return nil }
    return unsafe String(cString: value)
  }
}
