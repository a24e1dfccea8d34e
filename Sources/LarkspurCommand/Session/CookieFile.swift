import Foundation
import Larkspur
import LarkspurBytes
import LarkspurIO

/// A file of cookies in Netscape's format, which curl, wget and add-ons of browsers read and write: a line for each
/// cookie, with seven fields separated by tabs.
///
/// ```
/// #HttpOnly_.example.org	TRUE	/	TRUE	1893456000	name	value
/// ```
struct CookieFile: Sendable {
  private let output: String?
  let storage = HTTPCookieStorage()

  /// Reads the files. A file that does not exist has no cookies.
  init(_ options: SessionOptions.CookieJar) throws(CommandFailure) {
    output = options.output
    for path in options.files {
      guard path == "-" || FileManager.default.fileExists(atPath: path) else { continue }
      let text = String(decoding: try GetOptions.Data.file(path).bytes(), as: UTF8.self)
      if text.firstMatch(of: /(?im)^set-cookie:/) != nil {
        throw CommandFailure(.readFailed, "\(path) has fields of responses: only Netscape's format is read")
      }
      for cookie in Self.cookies(in: text) { keep(cookie) }
    }
  }

  /// Stores a cookie if a server of its domain could set it, because a file deserves no more trust than a server. The
  /// storage refuses cookies for public suffixes, and those that break the rules for their name's prefix (RFC 6265bis,
  /// section 5.7).
  private func keep(_ cookie: HTTPCookie) {
    let host = cookie.domain.hasPrefix(".") ? String(cookie.domain.dropFirst()) : cookie.domain
    guard let url = URL(string: "https://\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host)/") else {
      return
    }
    storage.setCookies([cookie], for: url, mainDocumentURL: nil)
  }

  /// Parses cookies. Lines that are no cookies are skipped.
  static func cookies(in text: String) -> [HTTPCookie] {
    // Only LF and CRLF end a line: a value may contain Unicode's other line ends.
    text.split { $0 == "\n" || $0 == "\r\n" }.compactMap(cookie)
  }

  private static let httpOnlyPrefix = "#HttpOnly_"

  private static func cookie(_ line: Substring) -> HTTPCookie? {
    let isHTTPOnly = line.hasPrefix(httpOnlyPrefix)
    let line = isHTTPOnly ? line.dropFirst(httpOnlyPrefix.count) : line
    var fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    // Like curl: some programs leave out the tab before an empty value.
    if fields.count == 6 { fields.append("") }
    guard !line.hasPrefix("#"), fields.count == 7, let expiry = Int64(fields[4]),
      // A Set-Cookie field could not express these, and in a request they would be other cookies.
      !fields[5].utf8.contains(UInt8(ascii: "=")), !fields.contains(where: { $0.utf8.contains(UInt8(ascii: ";")) })
    else { return nil }
    let host = fields[0].hasPrefix(".") ? String(fields[0].dropFirst()) : fields[0]
    var properties: [HTTPCookiePropertyKey: Any] = [
      .domain: fields[1] == "TRUE" ? "." + host : host, .path: fields[2], .name: fields[5], .value: fields[6],
    ]
    if fields[3] == "TRUE" { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[HTTPCookiePropertyKey(rawValue: "HttpOnly")] = "TRUE" }
    // Zero means that the cookie ends with the session. A program that keeps the file continues the session.
    if expiry != 0 { properties[.expires] = Date(timeIntervalSince1970: Double(expiry)) }
    return HTTPCookie(properties: properties)
  }

  /// Formats cookies. Cookies with tabs are left out, as by curl, because the format cannot express them.
  static func text(of cookies: [HTTPCookie]) -> String {
    "# Netscape HTTP Cookie File\n"
      + cookies.filter { cookie in
        ![cookie.domain, cookie.path, cookie.name, cookie.value].contains { $0.utf8.contains(UInt8(ascii: "\t")) }
      }.map { cookie in
        let expiry = cookie.expiresDate.map { Int64(max(min($0.timeIntervalSince1970, 1e15), 1)) } ?? 0
        let fields = [
          cookie.domain, cookie.domain.hasPrefix(".") ? "TRUE" : "FALSE", cookie.path,
          cookie.isSecure ? "TRUE" : "FALSE", "\(expiry)", cookie.name, cookie.value,
        ]
        return (cookie.isHTTPOnly ? httpOnlyPrefix : "") + fields.joined(separator: "\t") + "\n"
      }.joined()
  }

  /// Writes all cookies of the storage to the file, if there is one. Only its owner may read a new file.
  func save(deadline: Deadline) throws(CommandFailure) {
    guard let path = output else { return }
    let output = try FileOutput(path: path == "-" ? nil : path, deadline: deadline, isPrivate: true)
    do throws(CommandFailure) {
      try output.write(Array(Self.text(of: storage.cookies ?? []).utf8).span)
      try output.commit()
    } catch {
      output.abandon()
      throw error
    }
  }
}
