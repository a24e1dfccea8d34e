/// Names of an ELF file: each ends with a zero byte and is found by its offset.
struct NameTable {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var count: UInt64 { UInt64(bytes.count) }

  /// Whether the bytes from `offset` on begin with `prefix`. A prefix that ends with a zero byte matches a whole name.
  func name(at offset: UInt64, begins prefix: [UInt8]) -> Bool {
    guard offset <= count, UInt64(prefix.count) <= count - offset else { return false }
    var index = Int(offset)
    for byte in prefix {
      if bytes[index] != byte { return false }
      index += 1
    }
    return true
  }
}
