import Foundation
import LarkspurHTTP

extension HTTPCookie.Content {
  /// From a program's dictionary.
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
    // (For the other one, any text will do: as Foundation has it.)
    isHTTPOnly = Self.isSet(properties[.httpOnly]) && (properties[.httpOnly] as? String)?.uppercased() != "FALSE"
    sameSite = Self.sameSite(properties[.sameSitePolicy])
    expires = Self.date(properties[.expires])
    ports = (properties[.port] as? String).map(Self.ports) ?? []
    if version == 1 {
      // As in a field: version 0 knows neither (RFC 6265).
      comment = properties[.comment] as? String
      commentURL = Self.url(properties[.commentURL])
      if let age = Self.number(properties[.maximumAge]) { expires = now.after(seconds: TimeInterval(age)) }
    } else {
      // As Foundation has it: the other version knows one port.
      ports = Array(ports.prefix(1))
    }
    // A cookie without an end of its own ends with the session. The end of version 1 is its age.
    let isDiscarded = (properties[.discard] as? String).map { $0.uppercased() == "TRUE" }
    isSessionOnly = expires == nil || isDiscarded ?? (version == 1 && properties[.maximumAge] == nil)
  }

  /// Also a part of a text, which programs take their cookies' names and values from.
  private static func text(_ value: Any?) -> String? { value as? String ?? (value as? Substring).map { String($0) } }

  private static func domain(_ properties: [HTTPCookiePropertyKey: Any]) -> String? {
    let given = properties[.domain] as? String ?? url(properties[.originURL])?.asciiHost
    guard let given, !given.isEmpty, given != "." else { return nil }
    // A host in another script is known by its ASCII form.
    return Punycode.asciiName(given) ?? given.lowercased()
  }

  private static func url(_ value: Any?) -> URL? { value as? URL ?? (value as? String).flatMap { URL(string: $0) } }

  private static func number(_ value: Any?) -> Int? { value as? Int ?? (value as? String).flatMap { Int($0) } }

  /// - Returns: A date that a calendar has, or `nil` for none and for one that is not a number: like a field's date that cannot be
  ///   read, that one does not count (RFC 6265 5.2.1).
  private static func date(_ value: Any?) -> Date? {
    if let date = value as? Date {
      return date.timeIntervalSinceReferenceDate.isNaN ? nil : Date(CookieTime(date))
    }
    return (value as? String).flatMap { CookieDate.parse($0) }.map(Date.init)
  }

  /// Any text, `"FALSE"` too, but none that is empty.
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

  /// From a Set-Cookie field of an answer from `url`.
  init?(_ said: SetCookie, host: String, now: Date) {
    switch said.domain {
    case .invalid: return nil
    case .absent: self.init(name: said.name, value: said.value, domain: host, path: said.path ?? "/")
    case .named(let domain):
      let isAddress = CookieHost(domain)?.isAddress ?? false
      self.init(name: said.name, value: said.value, domain: isAddress ? domain : ".\(domain)", path: said.path ?? "/")
    }
    isSecure = said.isSecure
    isHTTPOnly = said.isHTTPOnly
    sameSite = said.sameSite
    expires = said.expires.map(Date.init)
    if let age = said.maxAge { expires = age > 0 ? now.after(seconds: TimeInterval(age)) : .distantPast }
    isSessionOnly = expires == nil
    let others = Dictionary(said.others) { $1 }
    guard others["version"] == "1" else { return }
    version = 1
    comment = others["comment"]
    commentURL = others["commenturl"].flatMap { URL(peerText: Array($0.utf8)) }
    ports = others["port"].map(Self.ports) ?? []
    if others["discard"] != nil { isSessionOnly = true }
  }

  // MARK: The jar's

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
  }

  /// As the jar keeps it, set at `now`.
  func cookie(now: CookieTime) -> Cookie {
    let isDotted = domain.hasPrefix(".")
    var legacy: Cookie.Legacy?
    let isDiscarded = isSessionOnly && expires != nil
    if version != 0 || comment != nil || commentURL != nil || !ports.isEmpty || isDiscarded {
      var more = Cookie.Legacy()
      more.version = version
      more.comment = comment
      more.commentURL = commentURL?.absoluteString
      more.ports = ports
      more.isDiscarded = isDiscarded
      legacy = more
    }
    return Cookie(
      name: name, value: value, domain: isDotted ? String(domain.dropFirst()) : domain, path: path,
      isHostOnly: !isDotted, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
      expiry: expires.map(CookieTime.init), creation: now, legacy: legacy)
  }
}

extension Date {
  /// The end of the year 9999, the last one that a cookie's field can name (RFC 6265 5.1.1).
  private static let lastOfCookies = Date(timeIntervalSince1970: 253_402_300_799)

  fileprivate func after(seconds: TimeInterval) -> Date {
    Date(CookieTime(seconds: timeIntervalSinceReferenceDate + seconds))
  }

  init(_ time: CookieTime) {
    // Dates have calendars: those of Foundation do not reach to the end of time.
    self.init(
      timeIntervalSinceReferenceDate: min(
        max(time.seconds, Date.distantPast.timeIntervalSinceReferenceDate),
        Date.lastOfCookies.timeIntervalSinceReferenceDate))
  }
}

extension CookieTime {
  init(_ date: Date) { self.init(seconds: date.timeIntervalSinceReferenceDate) }
}
