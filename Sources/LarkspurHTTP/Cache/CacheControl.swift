import LarkspurBytes

/// The directives of `Cache-Control` in a request or a response (RFC 9111 5.2, RFC 5861, RFC 8246).
///
/// The first of several directives with one name counts (RFC 9111 4.2.1). A number that cannot be read is kept as
/// `invalid`, because its presence has a meaning: a response with an unreadable lifetime is stale.
public struct CacheControl: Hashable, Sendable {
  /// A number of seconds, limited to a 32-bit number (RFC 9111 1.2.2).
  public enum Delta: Hashable, Sendable {
    case seconds(Int)
    case invalid

    /// The number of seconds, or `nil` if the argument is invalid.
    public var seconds: Int? { if case .seconds(let seconds) = self { seconds } else { nil } }
  }

  /// The part of a response that `no-cache` covers.
  public enum Scope: Hashable, Sendable {
    case nothing
    /// Only these fields. The names are in lower case.
    case fields([String])
    case everything
  }

  /// Maximum number of seconds: 2^31, 68 years. Larger numbers count as this one.
  public static let deltaSecondsMax = 1 << 31

  /// Maximum number of fields that `no-cache` may name; with more, `no-cache` covers the whole response, as RFC 9111
  /// 5.2.2.4 allows. Each name is searched for in the response, and one field has room for tens of thousands.
  public static let fieldNamesMax = 100

  public private(set) var maxAge: Delta?
  public private(set) var sharedMaxAge: Delta?
  public private(set) var noCache = Scope.nothing
  public private(set) var noStore = false
  public private(set) var isPublic = false
  public private(set) var isPrivate = false
  public private(set) var mustRevalidate = false
  public private(set) var mustUnderstand = false
  public private(set) var isImmutable = false
  public private(set) var staleWhileRevalidate: Delta?
  public private(set) var staleIfError: Delta?
  /// The argument of `max-stale`, or `seconds(deltaSecondsMax)` if it has none.
  public private(set) var maxStale: Delta?
  public private(set) var minFresh: Delta?
  public private(set) var onlyIfCached = false
  /// Whether there is any directive, known or unknown.
  public private(set) var isPresent = false

  public init() {}

  /// Reads the lines of `Cache-Control` among `fields`.
  public init(_ fields: FieldList) {
    for field in fields where field.name.equalsIgnoringCase("Cache-Control") {
      for member in ListMembers.split(field.value) { read(member) }
    }
  }

  /// Reads the directives of a request. `Pragma: no-cache` counts as `no-cache` if there is no `Cache-Control` (RFC
  /// 9111 5.4).
  public static func ofRequest(_ fields: FieldList) -> CacheControl {
    var control = CacheControl(fields)
    if !control.isPresent, fields.members(named: "Pragma").contains(where: { $0.equalsIgnoringCase("no-cache") }) {
      control.noCache = .everything
    }
    return control
  }

  private mutating func read(_ directive: String) {
    isPresent = true
    let bytes = Array(directive.utf8)
    let equals = bytes.firstIndex(of: ASCII.equals)
    let rawName = bytes[..<(equals ?? bytes.endIndex)]
    let name = ListMembers.trimmed(rawName)
    var argument: Argument?
    if let equals {
      // The grammar has no white space around the equals sign, so an argument with such white space is not trusted.
      argument = name.count == rawName.count ? Argument(bytes[(equals + 1)...]) : .malformed
    }
    apply(String(decoding: name, as: UTF8.self).asciiLowercased, argument)
  }

  private mutating func apply(_ name: String, _ argument: Argument?) {
    switch name {
    case "max-age": maxAge = maxAge ?? Self.delta(argument)
    case "s-maxage": sharedMaxAge = sharedMaxAge ?? Self.delta(argument)
    case "stale-while-revalidate": staleWhileRevalidate = staleWhileRevalidate ?? Self.delta(argument)
    case "stale-if-error": staleIfError = staleIfError ?? Self.delta(argument)
    case "min-fresh": minFresh = minFresh ?? Self.delta(argument)
    case "max-stale":
      maxStale = maxStale ?? (argument == nil ? .seconds(Self.deltaSecondsMax) : Self.delta(argument))
    case "no-cache": widenNoCache(argument)
    case "no-store": noStore = true
    case "public": isPublic = true
    case "private": isPrivate = true
    case "must-revalidate": mustRevalidate = true
    case "must-understand": mustUnderstand = true
    case "immutable": isImmutable = true
    case "only-if-cached": onlyIfCached = true
    default: break
    }
  }

  /// With field names as its argument, `no-cache` covers only those fields (RFC 9111 5.2.2.4).
  private mutating func widenNoCache(_ argument: Argument?) {
    guard case .text(let text)? = argument, noCache != .everything else {
      noCache = .everything
      return
    }
    var names = ListMembers.split(text).map(\.asciiLowercased)
    // An empty list of names restricts nothing.
    guard !names.isEmpty else {
      noCache = .everything
      return
    }
    if case .fields(let others) = noCache { names = others + names }
    noCache = names.count <= Self.fieldNamesMax ? .fields(names) : .everything
  }

  private static func delta(_ argument: Argument?) -> Delta {
    guard case .text(let text)? = argument else { return .invalid }
    return DeltaSeconds.parse(text).map { .seconds($0) } ?? .invalid
  }

  private enum Argument: Hashable {
    case text(String)
    case malformed

    /// Reads a token or a quoted string: a recipient must accept both for every directive (RFC 9111 5.2).
    init(_ bytes: ArraySlice<UInt8>) {
      guard bytes.first == ASCII.quote else {
        self = bytes.first.map(ASCII.isWhitespace) == true ? .malformed : .text(String(decoding: bytes, as: UTF8.self))
        return
      }
      guard bytes.count >= 2, bytes.last == ASCII.quote else {
        self = .malformed
        return
      }
      var text: [UInt8] = []
      var isEscaped = false
      for byte in bytes.dropFirst().dropLast() {
        if !isEscaped, byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else {
          isEscaped = false
          text.append(byte)
        }
      }
      self = .text(String(decoding: text, as: UTF8.self))
    }
  }
}

/// Parses a number of seconds in a field.
enum DeltaSeconds {
  /// Returns the number, at most `CacheControl.deltaSecondsMax` (RFC 9111 1.2.2), or `nil` if the text contains
  /// anything but digits.
  static func parse(_ text: String) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
    var number = 0
    for digit in text.utf8 {
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
      if number >= CacheControl.deltaSecondsMax { return CacheControl.deltaSecondsMax }
    }
    return number
  }
}
