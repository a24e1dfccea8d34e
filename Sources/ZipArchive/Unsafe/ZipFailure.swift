/// An error of libzip.
struct ZipFailure: Error, Hashable {
  enum Kind: Hashable {
    /// The file is not an archive, or cannot be read.
    case unreadableArchive
    /// The password is missing or wrong.
    case password
    /// The contents do not have the checksum of the archive.
    case checksum
    case other
  }

  var kind: Kind
  var message: String

  init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// Reads the error that libzip has left. The owner of the structure frees it.
  @unsafe
  init(_ error: UnsafeMutableRawPointer?, kind: Kind? = nil) {
    // Safe: the structure is initialized. Its text lives until the structure is freed, and is copied here.
    message = unsafe zip_error_strerror(error).map { unsafe String(cString: $0) } ?? ""
    self.kind = unsafe kind ?? Self.kind(of: zip_error_code_zip(error))
  }

  /// Makes an error of a code that `zip_open` or `zip_fdopen` has returned.
  init(openingCode code: Int32) {
    // Safe: the structure is initialized first, and freed at the end of the scope.
    var error = unsafe zip_error_t()
    unsafe zip_error_init_with_code(&error, code)
    defer { unsafe zip_error_fini(&error) }
    unsafe self.init(&error, kind: .unreadableArchive)
  }

  private static func kind(of code: Int32) -> Kind {
    switch code {
    case ZIP_ER_NOPASSWD, ZIP_ER_WRONGPASSWD: .password
    case ZIP_ER_CRC: .checksum
    default: .other
    }
  }
}
