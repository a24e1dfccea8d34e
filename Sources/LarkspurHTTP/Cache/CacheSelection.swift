import LarkspurBytes

/// The request fields that select a response among others of one URI (`Vary`), with their values (RFC 9111 4.1).
public struct CacheSelection: Sendable {
  /// The fields, sorted by name. Names are in lower case. `nil` as value means that the request did not have the field.
  public private(set) var fields: [(name: String, value: String?)] = [] { didSet { hash = Self.hash(of: fields) } }

  /// A hash that distinguishes the variants of one URI. Performance: computed once, and compared often.
  public private(set) var hash = CacheHash()

  /// Maximum number of selecting fields; a response with more is not stored. Each field is kept with the response, and
  /// searched for in each request that it might answer. No server that wants its responses to be cached names so many.
  public static let fieldsMax = 100

  /// Creates an empty selection, which matches every request.
  public init() {}

  public init(fields: [(name: String, value: String?)]) {
    self.fields = fields
    hash = Self.hash(of: fields)
  }

  /// Creates the selection that the response's `Vary` names, with the values of the request. Returns `nil` if `Vary`
  /// contains `*`, so that no request matches, or names more than `fieldsMax` fields.
  ///
  /// `Authorization` counts as if `Vary` named it, unless a shared cache may reuse the response (RFC 9111 3.5): one
  /// process may act for many users, and a response for one of them must not be served to another.
  public init?(response: FieldList, request: FieldList) {
    let names = response.members(named: "Vary").map(\.asciiLowercased)
    guard !names.contains("*") else { return nil }
    var unique = Set(names)
    guard unique.count <= Self.fieldsMax else { return nil }
    if request.contains(named: Self.authorization), !Self.isShared(CacheControl(response)) {
      unique.insert(Self.authorization)
    }
    self.init(fields: unique.sorted().map { (name: $0, value: Self.normalised($0, in: request)) })
  }

  private static let authorization = "authorization"

  /// Whether even a shared cache may serve the response to other users.
  private static func isShared(_ control: CacheControl) -> Bool {
    !control.isPrivate && (control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil)
  }

  /// Whether the response may answer a request with these fields.
  ///
  /// - Parameter isLenient: Whether a field that the request lacks matches every value: the caller may not know the
  ///   fields that a session adds to a request.
  public func matches(_ request: FieldList, isLenient: Bool = false) -> Bool {
    fields.allSatisfy { field in
      let value = Self.normalised(field.name, in: request)
      return value == field.value || isLenient && value == nil
    }
  }

  public var isEmpty: Bool { fields.isEmpty }

  var names: Set<String> { Set(fields.map(\.name)) }

  /// Removes the fields that the request did not have and `isUnknown` returns `true` for, so that they match every
  /// value.
  public mutating func removeMissing(_ isUnknown: (String) -> Bool) {
    fields.removeAll { $0.value == nil && isUnknown($0.name) }
  }

  private static func hash(of fields: [(name: String, value: String?)]) -> CacheHash {
    var hash = CacheHash()
    for field in fields {
      hash.append(field.name)
      hash.append(field.value.map { "=" + $0 } ?? "")
    }
    return hash
  }

  /// Returns the values of all lines in one text, in a normal form if different forms are known to have one meaning, or
  /// `nil` if the field is missing.
  static func normalised(_ name: String, in request: FieldList) -> String? {
    guard request.contains(named: name) else { return nil }
    // Credentials are only compared, so their hash is kept and not their text. The hash is not a cryptographic one:
    // guessed credentials can be tested against it.
    if name == authorization { return CacheHash(request.values(named: name).joined(separator: ",")).hexadecimal }
    let members = request.members(named: name)
    switch name {
    // Case and order have no meaning: the weights express preference (RFC 9110 12.5.2 to 12.5.4).
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

/// A hash of 128 bits of some text, equal in every process (FNV-1a). Not for secrets: two texts with an equal hash can
/// be found, so a look-up by hash must also compare the text.
public struct CacheHash: Hashable, Sendable {
  public private(set) var value: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d

  public init() {}

  public init(_ text: String) { append(text) }

  public init(value: UInt128) { self.value = value }

  /// Adds the text and a terminator.
  public mutating func append(_ text: String) {
    for byte in text.utf8 { append(byte) }
    append(0xff)
  }

  private mutating func append(_ byte: UInt8) {
    value = (value ^ UInt128(byte)) &* 0x0100_0000_0000_0000_0000_013b
  }

  /// The hash as 32 hexadecimal digits.
  public var hexadecimal: String {
    var digits: [UInt8] = []
    digits.reserveCapacity(32)
    for half in [UInt64(truncatingIfNeeded: value >> 64), UInt64(truncatingIfNeeded: value)] {
      for index in 0..<16 {
        let digit = UInt8(truncatingIfNeeded: half >> (60 - 4 * index)) & 15
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
