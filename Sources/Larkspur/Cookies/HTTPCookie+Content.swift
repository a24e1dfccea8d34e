import Foundation
import LarkspurHTTP

extension HTTPCookie.Content {
  /// Creates the content from a program's dictionary, or returns `nil` if the dictionary is invalid.
  init?(_ properties: [HTTPCookiePropertyKey: Any], now: Date) {
    guard let name = Self.text(properties[.name]), let value = Self.text(properties[.value]),
      let path = Self.text(properties[.path]), let domain = Self.domain(properties)
    else { return nil }
    let sent = [name, value, path, domain]
    guard !(name.isEmpty && value.isEmpty), !sent.contains(where: { $0.utf8.contains(where: SetCookie.isControl) })
    else { return nil }
    self.init(name: name, value: value, domain: domain, path: path.isEmpty ? "/" : path)
    version = Self.number(properties[.version]) == 1 ? 1 : 0
    isSecure = Self.isSet(properties[.secure])
    // For `secure` any text counts, as in Foundation.
    isHTTPOnly = Self.isTrue(properties[.httpOnly])
    isSetByJavaScript = Self.isTrue(properties[.setByJavaScript])
    sameSite = Self.sameSite(properties[.sameSitePolicy])
    expires = Self.date(properties[.expires])
    ports = (properties[.port] as? String).map(Self.ports) ?? []
    if version == 1 {
      // Version 0 has neither attribute (RFC 6265).
      comment = properties[.comment] as? String
      commentURL = Self.url(properties[.commentURL])
      if let age = Self.number(properties[.maximumAge]) { expires = now.after(seconds: TimeInterval(age)) }
    } else {
      // Version 0 keeps one port, as in Foundation.
      ports = Array(ports.prefix(1))
    }
    // A cookie without an expiry ends with the session. So does one of version 1 without `Max-Age`, whatever its
    // `Expires`, unless `Discard` is `"FALSE"`.
    let isDiscarded = (properties[.discard] as? String).map { $0.uppercased() == "TRUE" }
    isSessionOnly = expires == nil || isDiscarded ?? (version == 1 && properties[.maximumAge] == nil)
  }

  private static func isTrue(_ value: Any?) -> Bool { isSet(value) && (value as? String)?.uppercased() != "FALSE" }

  /// Returns the text of a `String` or a `Substring`.
  private static func text(_ value: Any?) -> String? { value as? String ?? (value as? Substring).map { String($0) } }

  private static func domain(_ properties: [HTTPCookiePropertyKey: Any]) -> String? {
    let given = properties[.domain] as? String ?? url(properties[.originURL])?.asciiHost
    guard let given, !given.isEmpty, given != "." else { return nil }
    // An internationalized host is compared in its ASCII form.
    return Punycode.asciiName(given) ?? given.lowercased()
  }

  private static func url(_ value: Any?) -> URL? { value as? URL ?? (value as? String).flatMap { URL(string: $0) } }

  private static func number(_ value: Any?) -> Int? { value as? Int ?? (value as? String).flatMap { Int($0) } }

  /// Returns the expiry of a property.
  ///
  /// - Returns: The date, limited to the range that calendars support, or `nil` if there is none or it is not a number.
  ///   A date that is not a number is ignored, like one in a field that cannot be parsed (RFC 6265 5.2.1).
  private static func date(_ value: Any?) -> Date? {
    if let date = value as? Date {
      return date.timeIntervalSinceReferenceDate.isNaN ? nil : Date(CookieTime(date))
    }
    return (value as? String).flatMap { CookieDate.parse($0) }.map(Date.init)
  }

  /// Whether a flag is set. Any text that is not empty counts, even `"FALSE"`.
  private static func isSet(_ value: Any?) -> Bool {
    if let text = value as? String { return !text.isEmpty }
    return value as? Bool ?? (value as? Int).map { $0 != 0 } ?? (value != nil)
  }

  private static func sameSite(_ value: Any?) -> Cookie.SameSite {
    switch ((value as? HTTPCookieStringPolicy)?.rawValue ?? value as? String)?.lowercased() {
    case "lax": .lax
    case "strict": .strict
    case "none": .none
    default: .unspecified
    }
  }

  private static func ports(_ text: String) -> [Int] {
    text.split(separator: ",").compactMap { Int($0.trimmingCharacters(in: CharacterSet(charactersIn: " \""))) }
  }

  /// Creates the content from a Set-Cookie field of a response from `host`, or returns `nil` if the field's domain is
  /// invalid.
  init?(_ parsed: SetCookie, host: String, now: Date) {
    switch parsed.domain {
    case .invalid: return nil
    case .absent: self.init(name: parsed.name, value: parsed.value, domain: host, path: parsed.path ?? "/")
    case .named(let domain):
      let isAddress = CookieHost(domain)?.isAddress ?? false
      self.init(
        name: parsed.name, value: parsed.value, domain: isAddress ? domain : ".\(domain)", path: parsed.path ?? "/")
    }
    isSecure = parsed.isSecure
    isHTTPOnly = parsed.isHTTPOnly
    sameSite = parsed.sameSite
    expires = parsed.expires.map(Date.init)
    if let age = parsed.maxAge { expires = age > 0 ? now.after(seconds: TimeInterval(age)) : .distantPast }
    isSessionOnly = expires == nil
    let others = Dictionary(parsed.others.map { ($0.name, $0.value) }) { $1 }
    guard others["version"] == "1" else { return }
    version = 1
    comment = others["comment"]
    commentURL = others["commenturl"].flatMap { URL(peerText: Array($0.utf8)) }
    ports = others["port"].map(Self.ports) ?? []
    if others["discard"] != nil { isSessionOnly = true }
  }

  // MARK: - Conversion from and to the jar

  init(_ cookie: Cookie) {
    let isDotted = !cookie.isHostOnly
    self.init(
      name: cookie.name, value: cookie.value, domain: isDotted ? ".\(cookie.domain)" : cookie.domain, path: cookie.path)
    isSecure = cookie.isSecure
    isHTTPOnly = cookie.isHTTPOnly
    sameSite = cookie.sameSite
    expires = cookie.expiry.map(Date.init)
    isSessionOnly = !cookie.isPersistent
    guard let legacy = cookie.legacy else { return }
    version = legacy.version
    comment = legacy.comment
    commentURL = legacy.commentURL.flatMap { URL(string: $0) }
    ports = legacy.ports
    isSetByJavaScript = legacy.isSetByScript
  }

  /// Returns the cookie in the jar's form, set at `now`.
  func cookie(now: CookieTime) -> Cookie {
    let isDotted = domain.hasPrefix(".")
    var legacy: Cookie.Legacy?
    let isDiscarded = isSessionOnly && expires != nil
    if version != 0 || comment != nil || commentURL != nil || !ports.isEmpty || isDiscarded || isSetByJavaScript {
      var more = Cookie.Legacy()
      more.version = version
      more.comment = comment
      more.commentURL = commentURL?.absoluteString
      more.ports = ports
      more.isDiscarded = isDiscarded
      more.isSetByScript = isSetByJavaScript
      legacy = more
    }
    return Cookie(
      name: name, value: value, domain: isDotted ? String(domain.dropFirst()) : domain, path: path,
      isHostOnly: !isDotted, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
      expiry: expires.map(CookieTime.init), creation: now, legacy: legacy)
  }
}

extension Date {
  /// The end of the year 9999, the latest date that a Set-Cookie field can name (RFC 6265 5.1.1).
  private static let lastOfCookies = Date(timeIntervalSince1970: 253_402_300_799)

  fileprivate func after(seconds: TimeInterval) -> Date {
    Date(CookieTime(seconds: timeIntervalSinceReferenceDate + seconds))
  }

  init(_ time: CookieTime) {
    // Limit the date to the range that Foundation's calendars support.
    self.init(
      timeIntervalSinceReferenceDate: min(
        max(time.seconds, Date.distantPast.timeIntervalSinceReferenceDate),
        Date.lastOfCookies.timeIntervalSinceReferenceDate))
  }
}

extension CookieTime {
  init(_ date: Date) { self.init(seconds: date.timeIntervalSinceReferenceDate) }
}
