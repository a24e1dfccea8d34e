extension TestServer {
  /// A JSON value to send, written as a Swift literal. Members keep their order.
  public indirect enum JSON: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without a fraction.
    case integer(Int)
    /// A number with a fraction. Infinity and NaN, which JSON does not have, are sent as `null`.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSON])
    /// An object. A name may occur more than once.
    case object([Member])

    /// A name of an object with its value.
    public struct Member: Hashable, Sendable {
      /// The name, without quotation marks and escapes.
      public var name: String
      /// The value.
      public var value: JSON

      /// Creates a member.
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
  /// Creates a string.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates a number without a fraction.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// Creates a number with a fraction.
  public init(floatLiteral value: Double) { self = .number(value) }
  /// Creates `true` or `false`.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  /// Creates `null`.
  public init(nilLiteral: ()) { self = .null }
  /// Creates an array.
  public init(arrayLiteral elements: TestServer.JSON...) { self = .array(elements) }
  /// Creates an object with its members in the order of the literal.
  public init(dictionaryLiteral elements: (String, TestServer.JSON)...) {
    self = .object(elements.map { Member($0, $1) })
  }
}
