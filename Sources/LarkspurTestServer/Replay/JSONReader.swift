/// Reads JSON text (RFC 8259), which may come from anywhere.
struct JSONReader {
  /// Why a text is no JSON, and the offset in bytes.
  struct Invalid: Error, CustomStringConvertible {
    let reason: String
    let offset: Int

    var description: String { "\(reason) at byte \(offset)" }
  }

  /// Maximum depth of arrays and objects in each other, so that a text cannot overflow the stack.
  private static let depthMax = 64

  private let bytes: [UInt8]
  private var index = 0

  private init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Reads a text that is one value. A byte order mark before it is ignored.
  static func value(_ bytes: [UInt8]) throws(Invalid) -> TestServer.JSON {
    var reader = JSONReader(bytes)
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { reader.index = 3 }
    let value = try reader.value(depth: 0)
    reader.skipBlanks()
    guard reader.index == bytes.count else { throw reader.invalid("something follows the value") }
    return value
  }

  private func invalid(_ reason: String) -> Invalid { Invalid(reason: reason, offset: index) }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { index += 1 }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    skipBlanks()
    guard next == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  private mutating func value(depth: Int) throws(Invalid) -> TestServer.JSON {
    guard depth < Self.depthMax else { throw invalid("values are nested more than \(Self.depthMax) deep") }
    skipBlanks()
    switch next {
    case UInt8(ascii: "{"): return .object(try members(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try elements(depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func members(depth: Int) throws(Invalid) -> [TestServer.JSON.Member] {
    index += 1
    var members: [TestServer.JSON.Member] = []
    if take("}") { return members }
    repeat {
      skipBlanks()
      guard next == UInt8(ascii: "\"") else { throw invalid("a name is missing") }
      let name = try string()
      guard take(":") else { throw invalid("a colon is missing") }
      members.append(TestServer.JSON.Member(name, try value(depth: depth)))
    } while take(",")
    guard take("}") else { throw invalid("an object does not end") }
    return members
  }

  private mutating func elements(depth: Int) throws(Invalid) -> [TestServer.JSON] {
    index += 1
    var elements: [TestServer.JSON] = []
    if take("]") { return elements }
    repeat { elements.append(try value(depth: depth)) } while take(",")
    guard take("]") else { throw invalid("an array does not end") }
    return elements
  }

  private mutating func word(_ word: String, _ value: TestServer.JSON) throws(Invalid) -> TestServer.JSON {
    guard bytes[index...].starts(with: word.utf8) else { throw invalid("an unknown word") }
    index += word.utf8.count
    return value
  }

  private mutating func number() throws(Invalid) -> TestServer.JSON {
    let text = bytes[index...].prefix { byte in
      UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "+-.eE".utf8.contains(byte)
    }
    let word = String(decoding: text, as: UTF8.self)
    guard let first = text.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "."), let number = Double(word)
    else {
      throw invalid("a value is missing")
    }
    index += text.count
    return Int(word).map { .integer($0) } ?? .number(number)
  }

  private mutating func string() throws(Invalid) -> String {
    index += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        guard let string = String(validating: text, as: UTF8.self) else {
          throw invalid("a text that is no UTF-8 ends")
        }
        return string
      case UInt8(ascii: "\\"): try escape(into: &text)
      case 0..<0x20: throw invalid("a control character")
      default:
        text.append(byte)
        index += 1
      }
    }
    throw invalid("a text does not end")
  }

  private mutating func escape(into text: inout [UInt8]) throws(Invalid) {
    index += 1
    guard let byte = next else { throw invalid("a text does not end") }
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"):
      var code = try codeUnit()
      // The second half of a pair of surrogates (RFC 8259, section 7).
      if 0xd800..<0xdc00 ~= code, bytes[index...].starts(with: "\\u".utf8) {
        index += 2
        let second = try codeUnit()
        guard 0xdc00..<0xe000 ~= second else { throw invalid("half of a pair of surrogates") }
        code = 0x10000 + (code - 0xd800) << 10 + (second - 0xdc00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw invalid("half of a pair of surrogates") }
      text += Array(String(scalar).utf8)
    default: throw invalid("an unknown escape")
    }
  }

  private mutating func codeUnit() throws(Invalid) -> UInt32 {
    let digits = bytes[index...].prefix(4)
    guard digits.count == 4, let code = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
      digits.first != UInt8(ascii: "+")
    else { throw invalid("four hexadecimal digits are missing") }
    index += 4
    return code
  }
}

extension TestServer.JSON {
  /// The value of a member of an object, or `nil`.
  subscript(name: String) -> Self? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  var textValue: String? { if case .string(let text) = self { text } else { nil } }

  var elements: [Self]? { if case .array(let elements) = self { elements } else { nil } }

  /// The number, or `nil` for another value.
  var numberValue: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .number(let number): number
    default: nil
    }
  }
}
