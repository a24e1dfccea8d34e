import Glibc
import LarkspurIO

/// An archive that is open for reading, by libzip. Use it on one thread at a time.
@safe
final class ZipReader {
  // Safe: the archive is open until `deinit`.
  private let archive: OpaquePointer
  let entryCount: Int
  /// The size of the archive in bytes, without bytes before it that its offsets do not count.
  let size: UInt64
  /// Whether the file begins with something other than the archive, such as a program that extracts it.
  let hasPrefix: Bool

  /// Reads the central directory, which stays in memory.
  ///
  /// - Parameter file: A regular file. The reader opens its own descriptor for it.
  /// - Throws: `ZipFailure` if the file is not an archive; `Errno`.
  init(_ file: OpenFile) throws {
    let fileSize = UInt64(clamping: try file.byteCount())
    let descriptor = try file.duplicatedDescriptor()
    let read = { (offset: UInt64, count: Int) in Self.read(descriptor, at: offset, count) }
    let start = EndRecord.archiveStart(fileSize: fileSize, read: read)
    hasPrefix = start > 0 || read(0, 2) != Array("PK".utf8)
    size = fileSize - start
    var code: Int32 = 0
    // Safe: the call takes over the descriptor, and writes one value to `code`.
    guard let archive = unsafe larkspur_zip_open_part(descriptor, start, size, &code) else {
      throw ZipFailure(openingCode: code)
    }
    unsafe self.archive = archive
    entryCount = unsafe Int(clamping: zip_get_num_entries(archive, 0))
  }

  /// Returns the bytes at a position of a file: fewer at its end, and an empty array after an error.
  private static func read(_ descriptor: Int32, at offset: UInt64, _ count: Int) -> [UInt8] {
    // Safe: pread writes at most `count` bytes, and returns their number.
    unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let got = unsafe pread(descriptor, buffer.baseAddress, count, off_t(clamping: offset))
      initialized = max(got, 0)
    }
  }

  deinit {
    // Safe: no entry is open any more, because each holds a reference to this reader.
    unsafe zip_discard(archive)
  }

  /// Returns the central directory's record of an entry.
  func record(_ index: Int) throws(ZipFailure) -> EntryRecord {
    let index = UInt64(clamping: index)
    var stat = unsafe zip_stat_t()
    // Safe: the structure is initialized by the first call. libzip keeps no pointer to it.
    unsafe zip_stat_init(&stat)
    guard unsafe zip_stat_index(archive, index, 0, &stat) == 0,
      // Safe: both names end with a NUL, and live as long as the archive. Without the UTF-8 flag, the strict form is the
      // raw form with the characters of CP437 replaced.
      let raw = unsafe zip_get_name(archive, index, ZIP_FL_ENC_RAW),
      let strict = unsafe zip_get_name(archive, index, ZIP_FL_ENC_STRICT)
    else { throw failure() }
    // Safe: both are NUL-terminated.
    let bytes = unsafe Array(UnsafeBufferPointer(start: raw, count: strlen(raw))).map { UInt8(bitPattern: $0) }
    var record = EntryRecord(name: bytes)
    record.isUTF8 = unsafe bytes.contains { $0 >= 128 } && strcmp(raw, strict) == 0
    // Safe: these are fields of the structure.
    let valid = unsafe stat.valid
    unsafe record.size = stat.size
    unsafe record.compressedSize = stat.comp_size
    unsafe record.checksum = stat.crc
    unsafe record.compressionMethod = stat.comp_method
    record.isEncrypted =
      unsafe valid & ZIP_STAT_ENCRYPTION_METHOD != 0 && stat.encryption_method != ZIP_EM_NONE
    record.usesAES =
      unsafe record.isEncrypted
      && [ZIP_EM_AES_128, ZIP_EM_AES_192, ZIP_EM_AES_256].contains(stat.encryption_method)
    // Safe: a field of the structure.
    if valid & ZIP_STAT_MTIME != 0, unsafe stat.mtime > 0 {
      record.modified = unsafe Double(stat.mtime)
    }
    // Safe: libzip writes one value to each of the two variables.
    _ = unsafe zip_file_get_external_attributes(archive, index, 0, &record.host, &record.attributes)
    for field in EntryTime.allCases {
      guard let time = extraField(index, field.rawValue).flatMap(field.modified) else { continue }
      record.modified = time
      break
    }
    return record
  }

  /// Returns the first extra field of an ID in the central directory.
  private func extraField(_ index: UInt64, _ id: UInt16) -> [UInt8]? {
    var length: UInt16 = 0
    // Safe: the field has `length` bytes, which live as long as the archive, and are copied here.
    guard
      let field = unsafe zip_file_extra_field_get_by_id(archive, index, id, 0, &length, ZIP_FL_CENTRAL)
    else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: field, count: Int(length)))
  }

  /// Opens the contents of an entry.
  ///
  /// - Throws: `ZipFailure` with the kind `password` if the password is missing or wrong. A wrong password passes with
  ///   ZipCrypto in one of 256 cases; the checksum is wrong then.
  func open(_ index: Int, _ record: EntryRecord, password: String?) throws(ZipFailure) -> Contents {
    try open(index, password: password, lacksChecksum: record.usesAES && record.checksum == 0, flags: 0)
  }

  private func open(
    _ index: Int, password: String?, lacksChecksum: Bool, flags: UInt32
  ) throws(ZipFailure) -> Contents {
    // Safe: libzip copies the password.
    let file =
      if let password, !password.isEmpty {
        unsafe zip_fopen_index_encrypted(archive, UInt64(clamping: index), flags, password)
      } else {
        unsafe zip_fopen_index(archive, UInt64(clamping: index), flags)
      }
    guard let file = unsafe file else { throw failure() }
    return unsafe Contents(file, of: self, index, password, lacksChecksum: lacksChecksum)
  }

  /// Decrypts an entry without decompressing it. libzip compares the authentication code at the end.
  private func authenticate(_ index: Int, password: String?) throws(ZipFailure) {
    let contents = try open(index, password: password, lacksChecksum: false, flags: ZIP_FL_COMPRESSED)
    while try !contents.read(atMost: 1 << 16).isEmpty {}
  }

  private func failure() -> ZipFailure {
    // Safe: the error belongs to the archive.
    unsafe ZipFailure(zip_get_error(archive))
  }

  /// The contents of one entry, decrypted and inflated.
  @safe
  final class Contents {
    // Safe: the entry is open until `deinit`, and so is the archive.
    private let file: OpaquePointer
    private let reader: ZipReader
    private let index: Int
    private let password: String?
    /// Whether the entry may have no checksum, as AES of the second version has none (AE-2). Some versions of libzip
    /// compare it even so, and fail at the end of such an entry.
    private let lacksChecksum: Bool

    @unsafe
    fileprivate init(
      _ file: OpaquePointer, of reader: ZipReader, _ index: Int, _ password: String?, lacksChecksum: Bool
    ) {
      unsafe self.file = file
      (self.reader, self.index, self.password) = (reader, index, password)
      self.lacksChecksum = lacksChecksum
    }

    deinit {
      // Safe: nothing uses the entry after this.
      _ = unsafe zip_fclose(file)
    }

    /// Reads bytes.
    ///
    /// - Returns: One to `count` bytes, or none at the end, where libzip has compared the checksum.
    func read(atMost count: Int) throws(ZipFailure) -> [UInt8] {
      var result: Int64 = 0
      // Safe: libzip writes at most `count` bytes, and returns their number.
      let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        guard let base = buffer.baseAddress else { return }
        result = unsafe zip_fread(file, base, UInt64(clamping: count))
        initialized = Int(clamping: max(result, 0))
      }
      // Safe: the error belongs to the entry.
      let failure = result < 0 ? unsafe ZipFailure(zip_file_get_error(file)) : nil
      guard let failure else { return bytes }
      guard failure.kind == .checksum, lacksChecksum else { throw failure }
      try reader.authenticate(index, password: password)
      return []
    }
  }
}
