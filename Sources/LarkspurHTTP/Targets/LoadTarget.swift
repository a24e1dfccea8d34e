import LarkspurBytes

/// The parts of a URL that an HTTP request needs. Read from the URL's text, which is percent-encoded already.
package final class LoadTarget: Sendable {
  package let isSecure: Bool
  /// The host in lower case, without brackets. An IPv6 zone keeps its case.
  package let host: String
  package let port: UInt16
  /// The value of `Host`: with the port, unless the port is the scheme's default.
  package let authority: String
  /// Path and query. Never empty, and without dot segments (RFC 3986 6.2.2.3), as FoundationNetworking, curl and
  /// browsers send it. Percent-encoded characters stay as they are.
  package let path: String
  /// The URL's text up to the path. URLs that share this beginning are for one server.
  private let beginning: String
  private let text: String

  package enum Invalid: Error {
    case schemeUnsupported
    case hostMissing
    case hostInvalid
    case portInvalid
    case portZero
  }

  /// Returns the target of a URL.
  ///
  /// - Parameters:
  ///   - text: The absolute URL.
  ///   - last: The previous target. If the URL is equal to its URL, or for the same server, that part is not
  ///     read again.
  ///   - asciiHost: Returns the URL's host in ASCII, or `nil` if there is none. Called for a host with other characters
  ///     or with percent-encoded ones.
  package static func of(
    _ text: String, after last: LoadTarget?, asciiHost: () -> String?
  ) throws(Invalid) -> LoadTarget {
    guard let last else { return try LoadTarget(text, asciiHost: asciiHost) }
    if last.text == text { return last }
    let bytes = text.utf8Span.span
    return last.isBeginning(of: bytes)
      ? LoadTarget(text, bytes, onServerOf: last) : try LoadTarget(text, asciiHost: asciiHost)
  }

  private init(_ text: String, _ bytes: Span<UInt8>, onServerOf other: LoadTarget) {
    isSecure = other.isSecure
    host = other.host
    port = other.port
    authority = other.authority
    beginning = other.beginning
    path = Self.path(of: text, bytes, from: other.beginning.utf8.count)
    self.text = text
  }

  package init(_ text: String, asciiHost: () -> String?) throws(Invalid) {
    let bytes = text.utf8Span.span
    let position: Int
    if Self.hasPrefix("http://".utf8, bytes) {
      isSecure = false
      position = 7
    } else if Self.hasPrefix("https://".utf8, bytes) {
      isSecure = true
      position = 8
    } else {
      if Self.hasPrefix("http:".utf8, bytes) || Self.hasPrefix("https:".utf8, bytes) { throw .hostMissing }
      throw .schemeUnsupported
    }
    var end = position
    var start = position
    while end < bytes.count, bytes[end] != 0x2F, bytes[end] != 0x3F, bytes[end] != 0x23 {
      // RFC 3986 3.2.1: the part before the last `@` is user information, not the host.
      if bytes[end] == 0x40 { start = end + 1 }
      end += 1
    }
    var hostEnd = start
    var isBracketed = false
    if start < end, bytes[start] == 0x5B {
      isBracketed = true
      while hostEnd < end, bytes[hostEnd] != 0x5D { hostEnd += 1 }
      guard hostEnd < end else { throw .hostInvalid }
      hostEnd += 1
    } else {
      while hostEnd < end, bytes[hostEnd] != 0x3A { hostEnd += 1 }
    }
    guard hostEnd > start else { throw .hostMissing }
    var number = 0
    var hasPort = false
    if hostEnd < end {
      guard bytes[hostEnd] == 0x3A else { throw .hostInvalid }
      for index in (hostEnd + 1)..<end {
        guard (0x30...0x39).contains(bytes[index]) else { throw .portInvalid }
        number = number * 10 + Int(bytes[index] - 0x30)
        guard number <= 65_535 else { throw .portInvalid }
        hasPort = true
      }
    }
    // No server listens on port 0: for the kernel, 0 stands for any port.
    guard !hasPort || number > 0 else { throw .portZero }
    let ownPort = isSecure ? 443 : 80
    port = UInt16(hasPort ? number : ownPort)
    var name = Self.lowercased(text, bytes, start..<hostEnd)
    if isBracketed {
      var address = String(name.dropFirst().dropLast())
      // RFC 6874: the `%` before a zone is encoded in a URL. The zone is an interface's name, and case-sensitive.
      if let percent = address.utf8.firstIndex(of: 0x25) {
        let written = Self.slice(of: text, start..<hostEnd).dropFirst().dropLast()
        address = HostAddress(String(written)).map { "\(address[..<percent])%\($0.zone ?? "")" } ?? address
      }
      host = address
      // `Host` cannot carry a zone (RFC 9110 7.2).
      if let zone = name.firstIndex(of: "%") { name = name[..<zone] + "]" }
    } else {
      if name.utf8.contains(where: { $0 == 0x25 || $0 >= 0x80 }) {
        // A decoded character must not end the host's name, or programs that decode it would take
        // `evil%2Eexample%2F.good.example` for a host of `evil.example`.
        guard let ascii = asciiHost(), ascii.utf8.allSatisfy(Self.mayStandInHost) else { throw .hostInvalid }
        name = ascii
      }
      host = name
    }
    authority = port == UInt16(ownPort) ? name : "\(name):\(port)"
    self.text = text
    beginning = Self.slice(of: text, 0..<end)
    path = Self.path(of: text, bytes, from: end)
  }

  private func isBeginning(of bytes: Span<UInt8>) -> Bool {
    let own = beginning.utf8Span.span
    guard bytes.count > own.count, bytes[own.count] == 0x2F else { return false }
    for index in 0..<own.count where own[index] != bytes[index] { return false }
    return true
  }

  private static func path(of text: String, _ bytes: Span<UInt8>, from start: Int) -> String {
    var end = start
    var queryStart: Int?
    var mayHaveDots = false
    while end < bytes.count, bytes[end] != 0x23 {
      if bytes[end] == 0x3F, queryStart == nil { queryStart = end }
      if bytes[end] == 0x2E, queryStart == nil, end > start, bytes[end - 1] == 0x2F { mayHaveDots = true }
      end += 1
    }
    guard mayHaveDots else {
      let rest = slice(of: text, start..<end)
      return rest.isEmpty ? "/" : bytes[start] == 0x2F ? rest : "/" + rest
    }
    let pathEnd = queryStart ?? end
    return URLResolution.withoutDots(slice(of: text, start..<pathEnd)[...]) + slice(of: text, pathEnd..<end)
  }

  /// Whether a byte may be in a host: not the bytes that the URL standard forbids (WHATWG URL, "forbidden domain code
  /// point").
  private static func mayStandInHost(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte < 0x7F && !"#%/:<>?@[\\]^|".utf8.contains(byte)
  }

  private static func hasPrefix(_ prefix: String.UTF8View, _ bytes: Span<UInt8>) -> Bool {
    guard bytes.count >= prefix.count else { return false }
    var index = 0
    for byte in prefix {
      guard bytes[index].asciiLowercased == byte else { return false }
      index += 1
    }
    return true
  }

  private static func slice(of text: String, _ range: Range<Int>) -> String {
    let bytes = text.utf8
    let start = bytes.index(bytes.startIndex, offsetBy: range.lowerBound)
    return String(text[start..<bytes.index(start, offsetBy: range.count)])
  }

  private static func lowercased(_ text: String, _ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
    let slice = slice(of: text, range)
    for index in range where (0x41...0x5A).contains(bytes[index]) || bytes[index] >= 0x80 { return slice.lowercased() }
    return slice
  }
}

extension LoadTarget {
  /// An origin (RFC 6454 4).
  package struct Origin: Hashable, Sendable {
    package var isSecure: Bool
    package var host: String
    package var port: UInt16

    package func isOrigin(of target: LoadTarget) -> Bool {
      port == target.port && isSecure == target.isSecure && host == target.host
    }
  }

  package var origin: Origin { Origin(isSecure: isSecure, host: host, port: port) }
}
