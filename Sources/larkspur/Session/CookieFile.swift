import Foundation
import Larkspur
import LarkspurBytes
import LarkspurIO

/// A file of cookies in Netscape's format, which curl and wget read and write, and browsers' add-ons: a line for each
/// cookie, seven fields with tabs between.
///
/// ```
/// #HttpOnly_.example.org	TRUE	/	TRUE	1893456000	name	value
/// ```
struct CookieFile: Sendable {
  private let path: String
  let storage = HTTPCookieStorage()

  /// A file that is not there has no cookies.
  init(_ path: String) throws(CommandFailure) {
    self.path = path
    do throws(Errno) {
      let text = String(decoding: try OpenFile(reading: path).readToEnd(), as: UTF8.self)
      for cookie in Self.cookies(in: text) { keep(cookie) }
    } catch {
      guard error == .noSuchFile else { throw CommandFailure(.readFailed, "could not read \(path): \(error)") }
    }
  }

  /// Keeps a cookie if a server of its domain could set it: a file is no more to be trusted than a server. The storage
  /// refuses cookies for public suffixes, and those that do not keep what their name promises (RFC 6265bis 5.7).
  private func keep(_ cookie: HTTPCookie) {
    let host = cookie.domain.hasPrefix(".") ? String(cookie.domain.dropFirst()) : cookie.domain
    guard let url = URL(string: "https://\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host)/") else {
      return
    }
    storage.setCookies([cookie], for: url, mainDocumentURL: nil)
  }

  /// Lines that are no cookies are passed over.
  static func cookies(in text: String) -> [HTTPCookie] {
    // (LF and CRLF alone end a line: a value may hold Unicode's other line ends.)
    text.split { $0 == "\n" || $0 == "\r\n" }.compactMap(cookie)
  }

  private static let httpOnlyPrefix = "#HttpOnly_"

  private static func cookie(_ line: Substring) -> HTTPCookie? {
    let isHTTPOnly = line.hasPrefix(httpOnlyPrefix)
    let line = isHTTPOnly ? line.dropFirst(httpOnlyPrefix.count) : line
    var fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    // As in curl: some programs leave out the tab before an empty value.
    if fields.count == 6 { fields.append("") }
    guard !line.hasPrefix("#"), fields.count == 7, let expiry = Int64(fields[4]),
      // What a server's field could not say, and what would be another cookie in a request.
      !fields[5].utf8.contains(UInt8(ascii: "=")), !fields.contains(where: { $0.utf8.contains(UInt8(ascii: ";")) })
    else { return nil }
    let host = fields[0].hasPrefix(".") ? String(fields[0].dropFirst()) : fields[0]
    var properties: [HTTPCookiePropertyKey: Any] = [
      .domain: fields[1] == "TRUE" ? "." + host : host, .path: fields[2], .name: fields[5], .value: fields[6],
    ]
    if fields[3] == "TRUE" { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[HTTPCookiePropertyKey(rawValue: "HttpOnly")] = "TRUE" }
    // Zero: it ends with the session, and whoever keeps the file goes on with that.
    if expiry != 0 { properties[.expires] = Date(timeIntervalSince1970: Double(expiry)) }
    return HTTPCookie(properties: properties)
  }

  /// Leaves out cookies with tabs, as curl does: they have no place in the format.
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

  /// Writes what there is now, for its owner alone.
  func save(deadline: Deadline) throws(CommandFailure) {
    let output = try FileOutput(path: path, deadline: deadline, isPrivate: true)
    do throws(CommandFailure) {
      try output.write(Array(Self.text(of: storage.cookies ?? []).utf8).span)
      try output.commit()
    } catch {
      output.abandon()
      throw error
    }
  }
}
