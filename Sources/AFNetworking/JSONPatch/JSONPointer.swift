/// A JSON Pointer (RFC 6901): the path from a document's root to a value.
struct JSONPointer: Sendable {
  /// The pointer as it was written. Two texts are one pointer only if their bytes are equal: each token has one way of
  /// being written.
  let text: String
  /// The tokens without their escapes, from the root on. Empty for the whole document.
  let tokens: [String]

  /// Reads a pointer (section 3).
  init(_ text: String) throws(AFJSONPatchError.Reason) {
    self.text = text
    let bytes = text.utf8
    guard let first = bytes.first else {
      tokens = []
      return
    }
    guard first == UInt8(ascii: "/") else { throw .invalidPointer(text) }
    var tokens: [String] = []
    // By bytes, because a slash and a combining character behind it form one `Character`.
    for part in bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let token = Self.unescaped(part) else { throw .invalidPointer(text) }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  /// Returns a token without its escapes, `~0` and `~1`, or `nil` if a tilde is not the beginning of one of them.
  private static func unescaped(_ part: Substring.UTF8View) -> String? {
    guard part.contains(UInt8(ascii: "~")) else { return String(Substring(part)) }
    var bytes: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "~") else {
        bytes.append(byte)
        continue
      }
      switch rest.popFirst() {
      case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
      case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
      default: return nil
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the index that a token means in an array (section 4): digits without a leading zero. `nil` for any other
  /// token, and for an index that is greater than any array's.
  static func index(_ token: String) -> Int? {
    let digits = token.utf8
    guard let first = digits.first, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      first != UInt8(ascii: "0") || digits.count == 1
    else { return nil }
    return Int(token)
  }

  /// Whether the pointers are equal.
  func isEqual(to other: JSONPointer) -> Bool { text.utf8.elementsEqual(other.text.utf8) }

  /// Whether `other` points to a value within the value that this pointer points to.
  func contains(_ other: JSONPointer) -> Bool {
    other.text.utf8.starts(with: text.utf8)
      && other.text.utf8.dropFirst(text.utf8.count).first == UInt8(ascii: "/")
  }
}
