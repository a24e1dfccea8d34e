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

  /// The files that are searched, in this order, if OpenSSL's own file and directory are empty: a program may carry an
  /// OpenSSL that was built for another system.
  static let usualFiles = [
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch, Gentoo
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora and RHEL before
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/var/lib/ca-certificates/ca-bundle.pem",  // openSUSE
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",  // Arch
    "/etc/ssl/cert.pem",  // Alpine, FreeBSD
    "/usr/local/share/certs/ca-root-nss.crt",  // FreeBSD
    "/usr/share/certs/ca-root-nss.crt",  // FreeBSD
  ]
  /// The directories that are searched after `usualFiles`, with one file for each root. Android's names are those of an
  /// older hash, so that all files are read.
  static let usualDirectories = ["/apex/com.android.conscrypt/cacerts", "/system/etc/security/cacerts"]

  @unsafe
  private static func text(_ value: UnsafePointer<CChar>?) -> String? {
    guard let value = unsafe value else { return nil }
    return unsafe String(cString: value)
  }
}
