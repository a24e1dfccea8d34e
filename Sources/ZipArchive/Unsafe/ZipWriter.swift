import LarkspurIO

/// An archive that is open for writing, by libzip. Use it on one thread at a time.
///
/// libzip compresses all entries in `close`, into a file with another name beside the archive, and renames that file at
/// the end: an archive that exists stays as it is until then.
@safe
final class ZipWriter {
  /// The attributes of an entry.
  struct Attributes: Hashable {
    /// `st_mode`.
    var mode: UInt32
    /// Seconds since 1970.
    var modified: Double
    var coding = Coding()
  }

  /// The compression and encryption of an entry.
  struct Coding: Hashable {
    /// -1 for zlib's default, 0 for none, 1 to 9.
    var compressionLevel: Int32 = -1
    var password: String?
    /// AES with a key of 256 bits, or else ZipCrypto.
    var usesAES = true

    /// libzip's number of the encryption, or `nil` for none.
    fileprivate var encryption: UInt16? {
      guard let password, !password.isEmpty else { return nil }
      return usesAES ? ZIP_EM_AES_256 : ZIP_EM_TRAD_PKWARE
    }
  }

  // Safe: the archive is open until `close` or `deinit`, which sets this to `nil`.
  private var archive: OpaquePointer?
  private let judge = Judge()
  /// Whether the archive has an entry that differs from the caller's settings. Such an archive must not be written.
  private(set) var hasFailed = false
  /// The number of files that are open for `close`.
  private var descriptorCount = 0
  /// Maximum number of files that are kept open. Others are opened again in `close`, one at a time.
  private static let descriptorMax = 128

  /// - Parameter isAppending: Whether to keep the entries of an archive at the path, instead of replacing it.
  init(path: String, isAppending: Bool) throws(ZipFailure) {
    var code: Int32 = 0
    // Safe: libzip copies the path, and writes one value to `code`. The judge lives as long as this object, which closes
    // the archive.
    let archive = unsafe larkspur_zip_open_output(
      path, isAppending ? ZIP_CREATE : ZIP_CREATE | ZIP_TRUNCATE,
      { judge, count in
        guard let judge = unsafe judge else { return 0 }
        return unsafe Unmanaged<Judge>.fromOpaque(judge).takeUnretainedValue().accepts(count) ? 1 : 0
      }, Unmanaged.passUnretained(judge).toOpaque(), &code)
    guard unsafe archive != nil else { throw ZipFailure(openingCode: code) }
    unsafe self.archive = archive
  }

  deinit {
    // Safe: drops what has not been written.
    if let archive = unsafe archive { unsafe zip_discard(archive) }
  }

  /// The number of entries, in time in proportion to it.
  var entryCount: Int {
    // Safe: the archive is open.
    guard let archive = unsafe archive else { return 0 }
    let count = unsafe max(zip_get_num_entries(archive, 0), 0)
    // Deleted entries count for libzip, and have no name.
    return (0..<count).count { unsafe zip_get_name(archive, UInt64($0), ZIP_FL_ENC_RAW) != nil }
  }

  /// Adds bytes, which libzip copies.
  func add(_ bytes: Span<UInt8>, named name: String, _ attributes: Attributes) throws(ZipFailure) {
    guard let archive = unsafe archive else { throw Self.isClosed }
    try Self.check(attributes.coding)
    // Safe: the bytes are lent for the call, which copies them.
    let source = unsafe bytes.withUnsafeBufferPointer { bytes in
      unsafe larkspur_zip_source_copy(archive, bytes.baseAddress, UInt64(clamping: bytes.count))
    }
    try unsafe add(source, named: name, attributes)
  }

  /// Adds a file. Up to 128 files stay open, and may be removed before `close`; others must stay.
  func add(_ file: OpenFile, at path: String, named name: String, _ attributes: Attributes) throws {
    guard let archive = unsafe archive else { throw Self.isClosed }
    try Self.check(attributes.coding)
    if descriptorCount < Self.descriptorMax, let descriptor = try? file.duplicatedDescriptor() {
      // Safe: the source owns the descriptor.
      let source = unsafe larkspur_zip_source_descriptor(archive, descriptor)
      try unsafe add(source, named: name, attributes)
      descriptorCount += 1
    } else {
      // Safe: libzip copies the path.
      let source = unsafe zip_source_file(archive, path, 0, -1)
      try unsafe add(source, named: name, attributes)
    }
  }

  /// Adds a directory without contents.
  func addDirectory(named name: String, _ attributes: Attributes) throws(ZipFailure) {
    guard let archive = unsafe archive else { throw Self.isClosed }
    // Safe: libzip copies the name. A slash at the end of the name is added if it is missing.
    let index = unsafe zip_dir_add(archive, name, ZIP_FL_ENC_UTF_8)
    guard index >= 0 else { throw failure() }
    do throws(ZipFailure) {
      try finish(UInt64(index), attributes)
    } catch {
      hasFailed = true
      throw error
    }
  }

  /// Checks what can be checked before libzip replaces an entry of the name.
  static func check(_ coding: Coding) throws(ZipFailure) {
    guard -1...9 ~= coding.compressionLevel else {
      throw ZipFailure(.other, "The compression level is not in -1...9.")
    }
    guard let encryption = coding.encryption else { return }
    guard zip_encryption_method_supported(encryption, 1) != 0 else {
      throw ZipFailure(.other, "libzip does not support the encryption.")
    }
  }

  @unsafe
  private func add(_ source: OpaquePointer?, named name: String, _ attributes: Attributes) throws(ZipFailure) {
    guard let archive = unsafe archive, let source = unsafe source else { throw failure() }
    // Safe: libzip copies the name, and owns the source if the call succeeds. If not, the source is freed here.
    let index = unsafe zip_file_add(archive, name, source, ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE)
    guard index >= 0 else {
      let failure = failure()
      unsafe zip_source_free(source)
      throw failure
    }
    do throws(ZipFailure) {
      try setCoding(UInt64(index), attributes.coding)
      try finish(UInt64(index), attributes)
    } catch {
      // The entry may have replaced an older entry, and libzip cannot undo that for one entry.
      hasFailed = true
      throw error
    }
  }

  private func setCoding(_ index: UInt64, _ coding: Coding) throws(ZipFailure) {
    // Safe: the archive is open, and libzip copies the password.
    guard let archive = unsafe archive else { throw Self.isClosed }
    let method = coding.compressionLevel == 0 ? ZIP_CM_STORE : ZIP_CM_DEFLATE
    // Level 0 of libzip is the default.
    guard unsafe zip_set_file_compression(archive, index, method, UInt32(max(coding.compressionLevel, 0))) == 0
    else { throw failure() }
    // An entry that replaces an encrypted one keeps the encryption of that one, unless it is set otherwise.
    let encryption = coding.encryption ?? ZIP_EM_NONE
    let password = coding.encryption == nil ? nil : coding.password
    guard unsafe zip_file_set_encryption(archive, index, encryption, password) == 0 else { throw failure() }
  }

  private func finish(_ index: UInt64, _ attributes: Attributes) throws(ZipFailure) {
    // Safe: the archive is open.
    guard let archive = unsafe archive else { throw Self.isClosed }
    let seconds = attributes.modified.isFinite ? min(max(attributes.modified, 0), 0xFFFF_FFFF) : 0
    guard
      unsafe zip_file_set_external_attributes(
        archive, index, 0, ZIP_OPSYS_UNIX, attributes.mode << 16) == 0,
      unsafe zip_file_set_mtime(archive, index, Int(seconds), 0) == 0,
      // An entry that replaces an older entry keeps the extra fields of the older one.
      unsafe zip_file_extra_field_delete(archive, index, ZIP_EXTRA_FIELD_ALL, Self.bothHeaders) == 0
    else { throw failure() }
    // The time of MS-DOS is in local time, and in units of two seconds.
    guard let time = EntryTime.extendedField(modified: attributes.modified) else { return }
    // Safe: libzip copies the field.
    let result = unsafe time.withUnsafeBufferPointer { field in
      unsafe zip_file_extra_field_set(
        archive, index, EntryTime.extended.rawValue, ZIP_EXTRA_FIELD_NEW, field.baseAddress,
        UInt16(clamping: field.count), Self.bothHeaders)
    }
    if result != 0 { throw failure() }
  }

  private static let bothHeaders = ZIP_FL_LOCAL | ZIP_FL_CENTRAL

  /// Compresses and writes all entries, and closes the archive.
  ///
  /// - Parameters:
  ///   - accepts: Decides about the finished archive, by its size in bytes. `false` keeps the file at the path.
  ///   - progress: Called on this thread with the part that is done, from 0 to 1.
  func close(accepts: @escaping (UInt64) -> Bool, progress: ((Double) -> Void)?) throws(ZipFailure) {
    // Safe: the archive is open, or `nil`.
    guard let archive = unsafe archive else { throw Self.isClosed }
    judge.accepts = accepts
    let box = progress.map { ProgressBox($0) }
    if let box {
      // Safe: the box lives until the end of this function, and libzip calls the function only in `zip_close`.
      _ = unsafe zip_register_progress_callback_with_state(
        archive, 0,
        { _, done, box in
          guard let box = unsafe box else { return }
          unsafe Unmanaged<ProgressBox>.fromOpaque(box).takeUnretainedValue().report(done)
        }, nil, Unmanaged.passUnretained(box).toOpaque())
    }
    defer { extendLifetime(box) }
    // Safe: the archive is open. A failed call leaves it open, and it is dropped then.
    if unsafe zip_close(archive) != 0 {
      let failure = failure()
      unsafe zip_discard(archive)
      unsafe self.archive = nil
      throw failure
    }
    unsafe self.archive = nil
  }

  private static let isClosed = ZipFailure(.other, "The archive is not open.")

  private func failure() -> ZipFailure {
    guard let archive = unsafe archive else { return Self.isClosed }
    // Safe: the error belongs to the archive.
    return unsafe ZipFailure(zip_get_error(archive))
  }
}

private final class ProgressBox {
  let report: (Double) -> Void

  init(_ report: @escaping (Double) -> Void) { self.report = report }
}

/// The decision about an archive that has been written, by its size in bytes.
private final class Judge {
  var accepts: (UInt64) -> Bool = { _ in false }
}
