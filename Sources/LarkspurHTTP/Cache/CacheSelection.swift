/// The request fields that chose a response among others of the same URI, with their values (RFC 9111 4.1).
public struct CacheSelection: Sendable {
  /// Names in lower case, sorted. No value: the request did not have the field.
  public private(set) var fields: [(name: String, value: String?)] = []

  /// How many fields a response may be chosen by. More are named by nobody who wants it to be stored: each would be kept with
  /// it, and looked for in every request that it might answer.
  public static let fieldsMax = 100

  /// Chosen by nothing: right for every request.
  public init() {}

  public init(fields: [(name: String, value: String?)]) { self.fields = fields }

  /// What the `Vary` of the response names, with the values of the request. Nil: `Vary` has a `*`, and no request
  /// will ever match; or it names too many.
  ///
  /// `Authorization` counts as if it were named, unless the response may be given to others (RFC 9111 3.5): one
  /// process may speak for many users, and what one of them was told is not for the next.
  public init?(response: CacheFields, request: CacheFields) {
    let names = response.members(named: "Vary").map(\.asciiLowercased)
    guard !names.contains("*") else { return nil }
    var unique = Set(names)
    guard unique.count <= Self.fieldsMax else { return nil }
    if request.contains(named: Self.authorization), !Self.isForEverybody(CacheControl(response)) {
      unique.insert(Self.authorization)
    }
    fields = unique.sorted().map { (name: $0, value: Self.normalised($0, in: request)) }
  }

  private static let authorization = "authorization"

  /// What lets even a shared cache give it to other users.
  private static func isForEverybody(_ control: CacheControl) -> Bool {
    !control.isPrivate && (control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil)
  }

  /// Whether the response may answer a request with these fields.
  ///
  /// - Parameter isLenient: A field that the request does not have matches whatever was sent: whoever asks does not
  ///   know what a session adds to a request.
  public func matches(_ request: CacheFields, isLenient: Bool = false) -> Bool {
    fields.allSatisfy { field in
      let value = Self.normalised(field.name, in: request)
      return value == field.value || isLenient && value == nil
    }
  }

  public var isEmpty: Bool { fields.isEmpty }

  /// Tells variants of one URI apart.
  public var hash: CacheHash {
    var hash = CacheHash()
    for field in fields {
      hash.append(field.name)
      hash.append(field.value.map { "=" + $0 } ?? "")
    }
    return hash
  }

  /// The values of all lines together, as far as their meaning is known to be the same however they are written.
  static func normalised(_ name: String, in request: CacheFields) -> String? {
    guard request.contains(named: name) else { return nil }
    // Credentials are compared, never read again: what is kept of them is of no use to whoever finds it.
    if name == authorization { return CacheHash(request.values(named: name).joined(separator: ",")).hexadecimal }
    let members = request.members(named: name)
    switch name {
    // Case and order have no meaning: preference is in the weights (RFC 9110 12.5.2 to 12.5.4).
    case "accept-charset", "accept-encoding", "accept-language":
      return members.map { withoutWhitespace($0.asciiLowercased) }.sorted().joined(separator: ",")
    default:
      return members.joined(separator: ",")
    }
  }

  private static func withoutWhitespace(_ text: String) -> String {
    String(decoding: text.utf8.filter { !ASCII.isWhitespace($0) }, as: UTF8.self)
  }
}

/// A number of 128 bits for some text, the same in every process (FNV-1a). Not for secrets: two texts with one hash
/// can be found, and so whoever looks something up by it compares the text as well.
public struct CacheHash: Hashable, Sendable {
  public private(set) var value: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d

  public init() {}

  public init(_ text: String) { append(text) }

  public init(value: UInt128) { self.value = value }

  /// Adds the text and its end.
  public mutating func append(_ text: String) {
    for byte in text.utf8 { append(byte) }
    append(0xff)
  }

  private mutating func append(_ byte: UInt8) {
    value = (value ^ UInt128(byte)) &* 0x0100_0000_0000_0000_0000_013b
  }

  /// 32 digits.
  public var hexadecimal: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(32)
    for half in [UInt64(truncatingIfNeeded: value >> 64), UInt64(truncatingIfNeeded: value)] {
      for place in 0..<16 {
        let digit = UInt8(truncatingIfNeeded: half >> (60 - 4 * place)) & 15
        digits.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      }
    }
    return String(decoding: digits, as: UTF8.self)
  }

  public init?(hexadecimal: some StringProtocol) {
    guard hexadecimal.utf8.count == 32 else { return nil }
    var (high, low) = (UInt64(0), UInt64(0))
    for byte in hexadecimal.utf8 {
      guard let digit = ASCII.hexDigit(byte) else { return nil }
      high = high << 4 | low >> 60
      low = low << 4 | UInt64(digit)
    }
    value = UInt128(high) << 64 | UInt128(low)
  }
}
