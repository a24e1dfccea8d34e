/// The text form in which cookies are kept between two runs of a program.
///
/// The file has a line with the format's version, one line for each cookie, and a line with a checksum, which
/// shows that the file was written completely:
///
/// ```
/// larkspur-cookies 1
/// domain path name value flags expiry creation update lastAccess version comment commentURL ports
/// ...
/// end 1 8a5f0d1e2c3b4a59
/// ```
///
/// Fields are separated by tabs; controls, spaces and `%` in them are percent-encoded. Flags are letters: `h` host
/// only, `s` Secure, `o` HttpOnly, `j` set by a script, and `n`, `l`, `t` for SameSite None, Lax and Strict. Times are
/// seconds since the beginning of 2001 in UTC. A field that is absent is `-`; text that may be absent has `=` before it.
public enum CookieFile {
  public enum Content: Hashable, Sendable {
    case cookies([Cookie])
    /// The file was not written by Larkspur, or not completely.
    case damaged
    /// The file was written by a later version of Larkspur.
    case newer
  }

  /// Maximum size of a file in bytes, more than a full jar of cookies that servers have set takes. Without a limit, a
  /// file that grows without end would be read into memory.
  public static let bytesMax = 64 << 20

  private static let title = "larkspur-cookies "
  private static let version = 1

  /// Returns the file of these cookies. Session cookies are left out.
  public static func bytes(of cookies: [Cookie]) -> [UInt8] {
    var bytes = Array("\(title)\(version)\n".utf8)
    var count = 0
    for cookie in cookies {
      guard cookie.isPersistent, let expiry = cookie.expiry else { continue }
      bytes += line(cookie, expiry).utf8
      bytes.append(ASCII.lf)
      count += 1
    }
    bytes += "end \(count) \(checksum(bytes[...]))\n".utf8
    return bytes
  }

  private static func line(_ cookie: Cookie, _ expiry: CookieTime) -> String {
    let legacy = cookie.legacy
    let times = [expiry, cookie.creation, cookie.update, cookie.lastAccess].map { "\($0.seconds)" }
    let ports = (legacy?.ports ?? []).map(String.init).joined(separator: ",")
    let fields =
      [cookie.domain, cookie.path, cookie.name, cookie.value].map(encode) + [flags(cookie)] + times + [
        legacy.map { "\($0.version)" } ?? "-", legacy?.comment.map { "=" + encode($0) } ?? "-",
        legacy?.commentURL.map { "=" + encode($0) } ?? "-", ports.isEmpty ? "-" : ports,
      ]
    return fields.joined(separator: "\t")
  }

  private static func flags(_ cookie: Cookie) -> String {
    let sameSite =
      switch cookie.sameSite {
      case .unspecified: ""
      case .none: "n"
      case .lax: "l"
      case .strict: "t"
      }
    let flags =
      (cookie.isHostOnly ? "h" : "") + (cookie.isSecure ? "s" : "") + (cookie.isHTTPOnly ? "o" : "")
      + (cookie.legacy?.isSetByScript == true ? "j" : "") + sameSite
    return flags.isEmpty ? "-" : flags
  }

  public static func read(_ bytes: [UInt8]) -> Content {
    var lines = bytes.split(separator: ASCII.lf, omittingEmptySubsequences: false)[...]
    guard let first = lines.popFirst(), first.starts(with: title.utf8),
      let found = Int(String(decoding: first.dropFirst(title.utf8.count), as: UTF8.self)), found > 0
    else { return .damaged }
    guard found == version else { return .newer }
    // Nothing follows the last line feed.
    guard lines.popLast()?.isEmpty == true, let last = lines.popLast() else { return .damaged }
    let end = "end \(lines.count) \(checksum(bytes[..<last.startIndex]))"
    guard last.elementsEqual(end.utf8) else { return .damaged }
    var cookies: [Cookie] = []
    cookies.reserveCapacity(lines.count)
    for line in lines {
      guard let cookie = cookie(line) else { return .damaged }
      if isPossible(cookie) { cookies.append(cookie) }
    }
    return .cookies(cookies)
  }

  /// Whether the cookie has no control characters, which would end the field that carries the cookie. Cookies with such
  /// characters are left out.
  private static func isPossible(_ cookie: Cookie) -> Bool {
    let texts = [cookie.name, cookie.value, cookie.domain, cookie.path]
    return !texts.contains { $0.utf8.contains(where: SetCookie.isControl) }
  }

  private static func cookie(_ line: ArraySlice<UInt8>) -> Cookie? {
    let fields = line.split(separator: ASCII.tab, omittingEmptySubsequences: false)
    guard fields.count == 13 else { return nil }
    let texts = fields[..<4].compactMap(decode)
    let times = fields[5..<9].compactMap { Double(String(decoding: $0, as: UTF8.self)) }
    guard texts.count == 4, times.count == 4, !times.contains(where: \.isNaN) else { return nil }
    var cookie = Cookie(
      name: texts[2], value: texts[3], domain: texts[0], path: texts[1], isHostOnly: false,
      expiry: CookieTime(seconds: times[0]), creation: CookieTime(seconds: times[1]))
    cookie.update = CookieTime(seconds: times[2])
    cookie.lastAccess = CookieTime(seconds: times[3])
    var isSetByScript = false
    for letter in fields[4] where letter != UInt8(ascii: "-") {
      switch letter {
      case UInt8(ascii: "h"): cookie.isHostOnly = true
      case UInt8(ascii: "s"): cookie.isSecure = true
      case UInt8(ascii: "o"): cookie.isHTTPOnly = true
      case UInt8(ascii: "j"): isSetByScript = true
      case UInt8(ascii: "n"): cookie.sameSite = .none
      case UInt8(ascii: "l"): cookie.sameSite = .lax
      case UInt8(ascii: "t"): cookie.sameSite = .strict
      default: return nil
      }
    }
    if let version = Int(String(decoding: fields[9], as: UTF8.self)) {
      var legacy = Cookie.Legacy()
      legacy.version = version == 1 ? 1 : 0
      legacy.comment = optional(fields[10])
      legacy.commentURL = optional(fields[11])
      legacy.ports = String(decoding: fields[12], as: UTF8.self).split(separator: ",").compactMap { Int($0) }
      legacy.isSetByScript = isSetByScript
      cookie.legacy = legacy
    }
    return cookie
  }

  private static func optional(_ field: ArraySlice<UInt8>) -> String? {
    field.first == ASCII.equals ? decode(field.dropFirst()) : nil
  }

  // MARK: Text

  private static func encode(_ text: String) -> String {
    guard text.utf8.contains(where: mustBeEncoded) else { return text }
    let digits = Array("0123456789abcdef".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if mustBeEncoded(byte) {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func mustBeEncoded(_ byte: UInt8) -> Bool {
    byte <= ASCII.space || byte == 0x7f || byte == UInt8(ascii: "%")
  }

  private static func decode(_ field: ArraySlice<UInt8>) -> String? {
    guard field.contains(UInt8(ascii: "%")) else { return String(decoding: field, as: UTF8.self) }
    var bytes: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard let high = rest.popFirst().flatMap(ASCII.hexDigit), let low = rest.popFirst().flatMap(ASCII.hexDigit)
        else { return nil }
        bytes.append(UInt8(truncatingIfNeeded: high << 4 | low))
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// FNV-1a: the checksum finds damage by failing disks and interrupted writes. FNV-1a does not protect against
  /// intentional changes.
  private static func checksum(_ bytes: ArraySlice<UInt8>) -> String {
    var hash = DomainHash()
    for byte in bytes { hash.add(byte) }
    let digits = String(hash.value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
