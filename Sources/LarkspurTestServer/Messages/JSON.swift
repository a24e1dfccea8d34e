extension TestServer {
  /// A JSON value to send, written as a Swift literal. Members keep their order.
  public indirect enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([Member])

    public struct Member: Hashable, Sendable {
      public var name: String
      public var value: JSON

      public init(_ name: String, _ value: JSON) {
        self.name = name
        self.value = value
      }
    }

    /// The value as JSON text (RFC 8259) without line breaks.
    public var text: String {
      switch self {
      case .null: "null"
      case .bool(let value): value ? "true" : "false"
      case .integer(let value): String(value)
      // JSON cannot express infinity and NaN.
      case .number(let value): value.isFinite ? String(value) : "null"
      case .string(let value): Self.quoted(value)
      case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
      case .object(let members):
        "{" + members.map { Self.quoted($0.name) + ":" + $0.value.text }.joined(separator: ",") + "}"
      }
    }

    private static func quoted(_ text: String) -> String {
      var output = "\""
      for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": output += "\\\""
        case "\\": output += "\\\\"
        case "\n": output += "\\n"
        case "\r": output += "\\r"
        case "\t": output += "\\t"
        case _ where scalar.value < 0x20: output += "\\u" + hexadecimal(UInt16(scalar.value))
        default: output.unicodeScalars.append(scalar)
        }
      }
      return output + "\""
    }
  }
}

extension TestServer.JSON: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(integerLiteral value: Int) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .number(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(nilLiteral: ()) { self = .null }
  public init(arrayLiteral elements: TestServer.JSON...) { self = .array(elements) }
  public init(dictionaryLiteral elements: (String, TestServer.JSON)...) {
    self = .object(elements.map { Member($0, $1) })
  }
}
