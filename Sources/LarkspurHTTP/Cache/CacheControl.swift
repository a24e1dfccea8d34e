/// What `Cache-Control` says, in a request or in a response (RFC 9111 5.2, RFC 5861, RFC 8246).
///
/// Of a directive that is there twice the first counts (RFC 9111 4.2.1). A number that cannot be read is kept as
/// `invalid`, for its presence means something: a lifetime that is no number is none.
public struct CacheControl: Hashable, Sendable {
  /// Seconds, of which there may be no more than a 32-bit number holds (RFC 9111 1.2.2).
  public enum Delta: Hashable, Sendable {
    case seconds(Int)
    case invalid

    /// Nothing, if it is invalid.
    public var seconds: Int? { if case .seconds(let seconds) = self { seconds } else { nil } }
  }

  /// What `no-cache` reaches.
  public enum Scope: Hashable, Sendable {
    case nothing
    /// Only these fields, in lower case.
    case fields([String])
    case everything
  }

  /// More seconds than this count as this many: 2^31, 68 years.
  public static let deltaSecondsMax = 1 << 31

  /// How many fields `no-cache` may name. Each is looked for in the response, and a field holds tens of thousands: with more
  /// it reaches everything, as RFC 9111 5.2.2.4 allows.
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
  /// `seconds(deltaSecondsMax)` if it has no argument.
  public private(set) var maxStale: Delta?
  public private(set) var minFresh: Delta?
  public private(set) var onlyIfCached = false
  /// There is a directive, known or not.
  public private(set) var isPresent = false

  public init() {}

  /// Reads the lines of `Cache-Control` among `fields`.
  public init(_ fields: CacheFields) {
    for field in fields where field.name.isCaselessly("Cache-Control") {
      for member in ListMembers.split(field.value) { read(member) }
    }
  }

  /// That of a request. `Pragma: no-cache` means the same where there is no `Cache-Control` (RFC 9111 5.4).
  public static func ofRequest(_ fields: CacheFields) -> CacheControl {
    var control = CacheControl(fields)
    if !control.isPresent, fields.members(named: "Pragma").contains(where: { $0.isCaselessly("no-cache") }) {
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
      // The grammar has no white space around the equals sign: what stands there is no argument one may trust.
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

  /// With names behind it `no-cache` is about those fields only (RFC 9111 5.2.2.4).
  private mutating func widenNoCache(_ argument: Argument?) {
    guard case .text(let text)? = argument, noCache != .everything else {
      noCache = .everything
      return
    }
    var names = ListMembers.split(text).map(\.asciiLowercased)
    // Who names none has not said that it is about some.
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

    /// A token or a quoted string: both are to be understood for every directive (RFC 9111 5.2).
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

/// A number of seconds in a field.
enum DeltaSeconds {
  /// Digits and nothing else. A number too large is as good as the largest (RFC 9111 1.2.2).
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
