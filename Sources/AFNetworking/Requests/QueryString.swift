import Foundation

/// Returns parameters as a query, `a=1&b[c]=2&d[]=3`, percent-escaped in UTF-8. Keys are sorted. A nested dictionary
/// adds `[key]` to the key, and an array adds `[]`; the members of a set share the key. `NSNull` gives a key without
/// `=`.
public func AFQueryStringFromParameters(_ parameters: [AnyHashable: Any]) -> String { QueryString.text(of: parameters) }

/// Returns a string as a key or a value of a query. Percent-escapes everything in UTF-8 except letters, digits, `-._~`,
/// and `/` and `?`, which a query may contain (RFC 3986 3.4).
public func AFPercentEscapedStringFromString(_ string: String) -> String { QueryString.escaped(string) }

/// The serialization of queries.
enum QueryString {
  struct Pair {
    var field: String
    var value: Any

    var isNull: Bool { value is NSNull }

    var text: String {
      isNull ? escaped(field) : "\(escaped(field))=\(escaped(QueryString.text(ofValue: value)))"
    }
  }

  static func text(of parameters: Any) -> String { pairs(of: parameters).map(\.text).joined(separator: "&") }

  /// Returns the pairs of a value: a dictionary's in the order of its keys, an array's in the order of its members.
  static func pairs(of parameters: Any) -> [Pair] {
    var result: [Pair] = []
    append(parameters, under: nil, to: &result)
    return result
  }

  /// The depth of the recursion is the depth of the caller's value.
  private static func append(_ value: Any, under key: String?, to pairs: inout [Pair]) {
    let value = unwrapped(value)
    switch value {
    // Performance: strings, bytes and numbers first, because casts to containers are slow.
    case is String, is Data, is any BinaryInteger, is any BinaryFloatingPoint, is NSNumber, is NSNull:
      pairs.append(Pair(field: key ?? "", value: value))
    case let dictionary as [AnyHashable: Any]:
      for (name, member) in sorted(dictionary.map { (text(ofValue: $0.key.base), $0.value) }) {
        append(member, under: key.map { "\($0)[\(name)]" } ?? name, to: &pairs)
      }
    case let array as [Any]:
      for member in array { append(member, under: "\(key ?? "")[]", to: &pairs) }
    case let set as Set<AnyHashable>:
      for (_, member) in sorted(set.map { (text(ofValue: $0.base), $0.base) }) {
        append(member, under: key, to: &pairs)
      }
    default:
      pairs.append(Pair(field: key ?? "", value: value))
    }
  }

  private static func sorted(_ members: [(String, Any)]) -> [(String, Any)] { members.sorted { $0.0 < $1.0 } }

  /// Returns the content of an optional. `nil` becomes `NSNull`, which stands for it in Objective-C's dictionaries.
  private static func unwrapped(_ value: Any) -> Any {
    let mirror = Mirror(reflecting: value)
    guard mirror.displayStyle == .optional else { return value }
    guard let child = mirror.children.first else { return NSNull() }
    return unwrapped(child.value)
  }

  /// Returns a value as Objective-C describes it: Booleans are numbers, and whole numbers have no decimal point.
  static func text(ofValue value: Any) -> String {
    switch value {
    case let string as String: string
    case let flag as Bool: flag ? "1" : "0"
    // Before `Double`: a large whole `NSNumber` can also be cast to `Double`.
    case let whole as Int64: "\(whole)"
    case let number as Double: text(number, "\(number)")
    case let number as Float: text(Double(number), "\(number)")
    default: "\(value)"
    }
  }

  private static func text(_ number: Double, _ description: String) -> String {
    description.hasSuffix(".0") ? String(description.dropLast(2)) : description
  }

  private static let hexDigits = Array("0123456789ABCDEF".utf8)

  static func escaped(_ string: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(string.utf8.count)
    for byte in string.utf8 {
      if isPlain(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"), UInt8(ascii: "/"), UInt8(ascii: "?"):
      true
    default: false
    }
  }
}
