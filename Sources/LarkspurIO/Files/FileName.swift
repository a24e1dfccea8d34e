/// File names for text that programs or users choose.
public enum FileName {
  /// Maximum size of a name in bytes. File systems accept 255, and names get suffixes.
  private static let bytesMax = 200
  private static let prefixBytes = 180

  /// Returns a file name that stands for `name`: one path component, which is not hidden. Different names have
  /// different results. Only names whose results are longer than 200 bytes, which file systems may not accept, share
  /// the first 180 bytes and differ by a 64-bit hash.
  public static func component(_ name: String) -> String {
    let encoded = Self.encoded(name)
    guard encoded.utf8.count > bytesMax else { return encoded }
    let number = encoded.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return encoded.prefix(prefixBytes) + "%\(String(number, radix: 16))"
  }

  /// Whether a text can be a result of `component`: such a name leads to no other directory.
  public static func isComponent(_ text: some StringProtocol) -> Bool {
    let bytes = text.utf8
    return !bytes.isEmpty && bytes.count <= bytesMax && bytes.first != UInt8(ascii: ".")
      && bytes.allSatisfy { isAllowed($0) || $0 == UInt8(ascii: "%") }
  }

  /// Percent-encodes all but ASCII letters, digits, `-`, `_`, `.` and spaces (RFC 3986, section 2.1), and a dot at the
  /// start. The empty name is `%`.
  private static func encoded(_ name: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in name.utf8 {
      if isAllowed(byte), !bytes.isEmpty || byte != UInt8(ascii: ".") {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return bytes.isEmpty ? "%" : String(decoding: bytes, as: UTF8.self)
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
      UInt8(ascii: " "):
      true
    default: false
    }
  }
}
