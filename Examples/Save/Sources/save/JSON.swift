/// A JSON value (RFC 8259). FoundationEssentials has a decoder, which would double the size of the program.
enum JSON: Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  struct Invalid: Error { var position: Int }

  var string: String? { if case .string(let value) = self { value } else { nil } }
  var array: [JSON]? { if case .array(let values) = self { values } else { nil } }
  subscript(name: String) -> JSON? { if case .object(let members) = self { members[name] } else { nil } }

  init(parsing bytes: [UInt8]) throws(Invalid) {
    var parser = Parser(bytes: bytes)
    self = try parser.value(depth: 0)
    guard parser.next == nil else { throw parser.invalid }
  }

  private struct Parser {
    static let depthMax = 64

    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    var invalid: Invalid { Invalid(position: position) }

    /// The next byte that is no white space. `nil` at the end.
    var next: UInt8? {
      mutating get {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
      }
    }

    mutating func takes(_ character: Unicode.Scalar) -> Bool {
      guard next == UInt8(ascii: character) else { return false }
      position += 1
      return true
    }

    mutating func value(depth: Int) throws(Invalid) -> JSON {
      guard depth < Self.depthMax else { throw invalid }
      switch next {
      case UInt8(ascii: "{"): return .object(try members(depth: depth + 1))
      case UInt8(ascii: "["): return .array(try elements(depth: depth + 1))
      case UInt8(ascii: "\""): return .string(try text())
      default: return try word()
      }
    }

    mutating func members(depth: Int) throws(Invalid) -> [String: JSON] {
      var members: [String: JSON] = [:]
      position += 1
      if takes("}") { return members }
      repeat {
        guard next == UInt8(ascii: "\"") else { throw invalid }
        let name = try text()
        guard takes(":") else { throw invalid }
        members[name] = try value(depth: depth)
      } while takes(",")
      guard takes("}") else { throw invalid }
      return members
    }

    mutating func elements(depth: Int) throws(Invalid) -> [JSON] {
      var elements: [JSON] = []
      position += 1
      if takes("]") { return elements }
      repeat { elements.append(try value(depth: depth)) } while takes(",")
      guard takes("]") else { throw invalid }
      return elements
    }

    mutating func word() throws(Invalid) -> JSON {
      let end = bytes[position...].firstIndex { !"+-.".utf8.contains($0) && !Self.isAlphanumeric($0) } ?? bytes.count
      let word = String(decoding: bytes[position..<end], as: UTF8.self)
      switch word {
      case "null": position = end
      case "true", "false":
        position = end
        return .bool(word == "true")
      default:
        guard word.utf8.first != UInt8(ascii: "+"), word.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }),
          let number = Double(word)
        else { throw invalid }
        position = end
        return .number(number)
      }
      return .null
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 }

    mutating func text() throws(Invalid) -> String {
      var units: [UInt8] = []
      position += 1
      while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
        guard bytes[position] >= 0x20 else { throw invalid }
        if bytes[position] == UInt8(ascii: "\\") {
          units += String(try escape()).utf8
        } else {
          units.append(bytes[position])
          position += 1
        }
      }
      guard position < bytes.count, let text = String(validating: units, as: UTF8.self) else { throw invalid }
      position += 1
      return text
    }

    mutating func escape() throws(Invalid) -> Unicode.Scalar {
      let plain: [UInt8: Unicode.Scalar] = [
        0x22: "\"", 0x5C: "\\", 0x2F: "/", 0x62: "\u{8}", 0x66: "\u{C}", 0x6E: "\n", 0x72: "\r", 0x74: "\t",
      ]
      guard position + 1 < bytes.count else { throw invalid }
      position += 2
      if let scalar = plain[bytes[position - 1]] { return scalar }
      guard bytes[position - 1] == UInt8(ascii: "u") else { throw invalid }
      let first = try hexadecimal()
      guard first & 0xFC00 == 0xD800 else {
        guard let scalar = Unicode.Scalar(first) else { throw invalid }
        return scalar
      }
      // A character beyond U+FFFF is two escapes.
      guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u")
      else { throw invalid }
      position += 2
      let second = try hexadecimal()
      guard second & 0xFC00 == 0xDC00,
        let scalar = Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + second & 0x3FF)
      else { throw invalid }
      return scalar
    }

    mutating func hexadecimal() throws(Invalid) -> UInt32 {
      guard position + 4 <= bytes.count, bytes[position..<position + 4].allSatisfy(Self.isAlphanumeric),
        let value = UInt32(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
      else { throw invalid }
      position += 4
      return value
    }
  }
}
