import LarkspurBytes

/// A host name that may be looked up: labels of letters, digits, `-` and `_`. Labels in other scripts have to be
/// A-labels (`xn--...`).
///
/// A name whose last label is a number is refused. The system's resolver takes `127.1` and `0x7f000001` for addresses,
/// which would evade every check of the text. By the URL standard, too, such a host is not a name.
public struct HostName: Hashable, Sendable {
  /// The name in lower case, without a dot at its end.
  public let text: String
  /// Whether a dot ended the name, so that the resolver tries no search domain.
  public let isComplete: Bool

  public enum Invalid: String, Error, Hashable, Sendable, CaseIterable {
    case empty = "the name is empty"
    case tooLong = "the name is longer than 253 bytes"
    case labelEmpty = "the name has an empty label"
    case labelTooLong = "a label of the name is longer than 63 bytes"
    case notASCII = "the name is not ASCII: it needs its xn-- form"
    case byteIllegal = "the name holds a character that no host name has"
    case number = "the name ends in a number, and is not an IP address"
  }

  /// Maximum length of a name in bytes, without a dot at its end (RFC 1035 2.3.4, less the bytes that only the wire
  /// format has).
  public static let bytesMax = 253
  public static let labelBytesMax = 63

  public init(_ host: String) throws(Invalid) {
    var name = Self.normal(host)[...]
    isComplete = name.utf8.last == UInt8(ascii: ".")
    if isComplete { name.removeLast() }
    guard !name.isEmpty else { throw .empty }
    guard name.utf8.count <= Self.bytesMax else { throw .tooLong }
    let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    for label in labels { try Self.check(label) }
    if let last = labels.last, Self.isNumber(last) { throw .number }
    text = String(name)
  }

  /// The text that the system's resolver is asked for, with the dot if the name is complete.
  public var question: String { isComplete ? text + "." : text }

  /// Whether the name is `localhost` or below it (RFC 6761 6.3).
  public var isLocalhost: Bool { text == "localhost" || text.hasSuffix(".localhost") }

  /// Returns the name with its ASCII letters in lower case.
  public static func normal(_ host: String) -> String { host.asciiLowercased }

  private static func check(_ label: Substring.UTF8View) throws(Invalid) {
    guard !label.isEmpty else { throw .labelEmpty }
    guard label.count <= labelBytesMax else { throw .labelTooLong }
    for byte in label where !isNameByte(byte) { throw byte < 0x80 ? .byteIllegal : .notASCII }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    ASCII.isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: "_")
  }

  /// Whether the label reads as a decimal, an octal, or, behind `0x`, a hexadecimal number.
  private static func isNumber(_ label: Substring.UTF8View) -> Bool {
    label.allSatisfy(ASCII.isDigit) || label.starts(with: "0x".utf8) && label.dropFirst(2).allSatisfy(isHexDigit)
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool { ASCII.hexDigit(byte) != nil }
}
