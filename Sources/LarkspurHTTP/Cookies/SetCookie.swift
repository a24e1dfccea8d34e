/// The content of one Set-Cookie field (RFC 6265bis 5.6), before it is checked against the response's origin.
public struct SetCookie: Hashable, Sendable {
  public enum Domain: Hashable, Sendable {
    case absent
    /// The domain in lower case, without its leading dot.
    case named(String)
    /// The attribute cannot name a host: the whole cookie is refused.
    case invalid
  }

  public var name: String
  public var value: String
  public var domain = Domain.absent
  /// The path, or `nil` if the attribute is missing or does not begin with `/`. Then the path follows from the
  /// request's.
  public var path: String?
  public var isSecure = false
  public var isHTTPOnly = false
  public var sameSite = Cookie.SameSite.unspecified
  public var expires: CookieTime?
  /// The lifetime in seconds. Zero or a negative number removes the cookie.
  public var maxAge: Int64?
  /// Unknown attributes, in their order, with names in lower case.
  public private(set) var others: [Attribute] = []

  public struct Attribute: Hashable, Sendable {
    public var name: String
    public var value: String
  }

  /// Reads a field.
  ///
  /// - Returns: The content, or `nil` if the field contains a control character, or its name and value are empty or
  ///   longer than ``CookieLimits/pairBytesMax`` together.
  public init?(_ field: some StringProtocol) {
    let bytes = Array(field.utf8)
    // A control character would end the Cookie field, or make servers refuse each request with this cookie.
    guard !bytes.contains(where: Self.isControl) else { return nil }
    var parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)[...]
    guard let pair = parts.popFirst() else { return nil }
    if let equals = pair.firstIndex(of: ASCII.equals) {
      name = Self.text(pair[..<equals])
      value = Self.text(pair[(equals + 1)...])
    } else {
      name = ""
      value = Self.text(pair)
    }
    let count = name.utf8.count + value.utf8.count
    guard count > 0, count <= CookieLimits.pairBytesMax else { return nil }
    for part in parts { read(part) }
  }

  private mutating func read(_ attribute: ArraySlice<UInt8>) {
    let equals = attribute.firstIndex(of: ASCII.equals)
    let name = HostName.normal(Self.text(attribute[..<(equals ?? attribute.endIndex)]))
    let bytes = equals.map { Self.trim(attribute[($0 + 1)...]) } ?? []
    guard bytes.count <= CookieLimits.attributeBytesMax else { return }
    let value = String(decoding: bytes, as: UTF8.self)
    // The last of several attributes with one name counts.
    switch name {
    case "expires": expires = CookieDate.parse(bytes) ?? expires
    case "max-age": maxAge = Self.seconds(bytes) ?? maxAge
    case "domain": read(domain: bytes)
    case "path": path = bytes.first == UInt8(ascii: "/") ? value : nil
    case "secure": isSecure = true
    case "httponly": isHTTPOnly = true
    case "samesite": sameSite = Self.sameSite(value)
    case "": break
    default: others.append(Attribute(name: name, value: value))
    }
  }

  private mutating func read(domain bytes: ArraySlice<UInt8>) {
    // An empty Domain is ignored (RFC 6265 5.2.3). Later drafts let it cancel an earlier Domain.
    guard !bytes.isEmpty else { return }
    let name = bytes.first == UInt8(ascii: ".") ? bytes.dropFirst() : bytes
    guard !name.isEmpty, name.allSatisfy({ 0x21..<0x7f ~= $0 }) else {
      domain = .invalid
      return
    }
    domain = .named(HostName.normal(String(decoding: name, as: UTF8.self)))
  }

  /// Reads Max-Age (RFC 6265bis 5.6.2). Significant digits beyond twelve are dropped: the lifetime is limited to far
  /// less.
  private static func seconds(_ bytes: ArraySlice<UInt8>) -> Int64? {
    let isNegative = bytes.first == UInt8(ascii: "-")
    let digits = isNegative ? bytes.dropFirst() : bytes
    guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
    let seconds = digits.reduce(0 as Int64) { sum, digit in
      sum > 99_999_999_999 ? sum : sum * 10 + Int64(digit - UInt8(ascii: "0"))
    }
    return isNegative ? -seconds : seconds
  }

  private static func sameSite(_ value: String) -> Cookie.SameSite {
    switch HostName.normal(value) {
    case "none": .none
    case "lax": .lax
    case "strict": .strict
    default: .unspecified
    }
  }

  /// Whether the byte is a control character other than the tab (RFC 6265bis 5.6).
  public static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != ASCII.tab || byte == 0x7f }

  private static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let isSpace = { (byte: UInt8) in byte == ASCII.space || byte == ASCII.tab }
    let start = bytes.drop(while: isSpace)
    guard let last = start.lastIndex(where: { !isSpace($0) }) else { return [] }
    return start[...last]
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: trim(bytes), as: UTF8.self) }
}
