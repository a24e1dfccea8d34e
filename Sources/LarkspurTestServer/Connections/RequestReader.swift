/// Reads requests from a wire (RFC 9112, sections 2, 3, 5 to 7).
///
/// The reader is strict wherever the rules bind a client: a malformed request is a bug of the client under test.
struct RequestReader {
  enum Failure: Error {
    /// The connection ended, in order or not, after this many bytes of the head; 0 is an end between two requests.
    case endedInHead(bytes: Int)
    /// The connection ended within the body.
    case endedInBody
    /// The request breaks a rule, named in words.
    case malformed(String)
    /// The head is longer than `headBytesMax`.
    case headTooLarge
  }

  let wire: Wire
  let headBytesMax: Int
  let bodyBytesKept: Int
  /// Gets each piece of the body as it comes, for an upload of which a part counts. An error ends the reading.
  var onContent: ((ArraySlice<UInt8>) throws(Failure) -> Void)?

  private static let chunkLineBytesMax = 4096
  private static let trailerBytesMax = 16_384

  // MARK: Head

  /// Reads the next request without its body. The caller fills in `connection` and `ordinal`.
  func readHead() throws(Failure) -> TestServer.Request {
    var used = 0
    var line = try headLine(&used)
    // RFC 9112, section 2.2: some clients send an extra line break behind a body.
    if line.isEmpty { line = try headLine(&used) }
    let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[1].isEmpty else {
      throw .malformed("the request line is not `METHOD target HTTP/1.x`: \(quoted(line))")
    }
    guard isToken(parts[0]) else { throw .malformed("the method is not a token: \(quoted(parts[0]))") }
    let version = text(of: parts[2])
    guard version == "HTTP/1.1" || version == "HTTP/1.0" else {
      throw .malformed("the version is neither HTTP/1.1 nor HTTP/1.0: \(quoted(parts[2]))")
    }
    var request = TestServer.Request(
      connection: 0, ordinal: 0, method: text(of: parts[0]), target: text(of: parts[1]), version: version, fields: [:])
    while true {
      let line = try headLine(&used)
      if line.isEmpty { break }
      let field = try field(line)
      request.fields.add(field.name, field.value)
    }
    let hosts = request.fields.values("Host").count
    guard hosts <= 1, hosts == 1 || version == "HTTP/1.0" else {
      throw .malformed("\(hosts) Host fields (RFC 9112, section 3.2 wants one)")
    }
    return request
  }

  private func headLine(_ used: inout Int) throws(Failure) -> ArraySlice<UInt8> {
    var partial = 0
    do {
      guard let line = try wire.takeLine(atMost: headBytesMax - used, partial: &partial) else {
        throw Failure.headTooLarge
      }
      used += line.count
      return try withoutLineEnd(line)
    } catch let failure as Failure {
      throw failure
    } catch {
      throw .endedInHead(bytes: used + partial)
    }
  }

  private func withoutLineEnd(_ line: ArraySlice<UInt8>) throws(Failure) -> ArraySlice<UInt8> {
    let line = line.dropLast()
    guard line.last == UInt8(ascii: "\r") else { throw .malformed("a line ends without CR: \(quoted(line))") }
    return line.dropLast()
  }

  private func field(_ line: ArraySlice<UInt8>) throws(Failure) -> TestServer.Field {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
      throw .malformed("a field line has no colon: \(quoted(line))")
    }
    guard isToken(line[..<colon]) else { throw .malformed("a field name is not a token: \(quoted(line[..<colon]))") }
    let value = line[(colon + 1)...]
    guard !value.contains(where: { $0 < 0x20 && $0 != UInt8(ascii: "\t") || $0 == 0x7f }) else {
      throw .malformed("a field value has a control character: \(quoted(line))")
    }
    return TestServer.Field(text(of: line[..<colon]), trimmed(text(of: value)))
  }

  // MARK: Body

  /// Whether the head announces a body.
  static func announcesBody(_ request: TestServer.Request) -> Bool {
    request.fields["Transfer-Encoding"] != nil || (request.fields["Content-Length"] ?? "0") != "0"
  }

  /// Reads the body that the head announces into the request.
  func readBody(of request: inout TestServer.Request) throws(Failure) {
    let codings = request.fields.values("Transfer-Encoding")
    let lengths = request.fields.values("Content-Length")
    if !codings.isEmpty {
      guard lengths.isEmpty else { throw .malformed("Content-Length beside Transfer-Encoding") }
      guard codings.count == 1, isSameName(codings[0], "chunked") else {
        throw .malformed("a transfer coding other than chunked: \(codings.joined(separator: ", "))")
      }
      try readChunks(of: &request)
    } else if let length = lengths.first {
      guard lengths.count == 1, !length.isEmpty, length.utf8.allSatisfy({ (48...57).contains($0) }),
        let count = Int(length)
      else { throw .malformed("Content-Length is not one number: \(lengths.joined(separator: ", "))") }
      try readBytes(count, of: &request)
    }
  }

  private func readBytes(_ count: Int, of request: inout TestServer.Request) throws(Failure) {
    var left = count
    while left > 0 {
      let bytes: ArraySlice<UInt8>
      do { bytes = try wire.take(atMost: left) } catch { throw .endedInBody }
      left -= bytes.count
      request.bodyCount += bytes.count
      request.bodyChecksum.update(bytes.span)
      request.body.append(contentsOf: bytes.prefix(bodyBytesKept - request.body.count))
      try onContent?(bytes)
    }
  }

  private func readChunks(of request: inout TestServer.Request) throws(Failure) {
    while true {
      let line = try bodyLine(atMost: Self.chunkLineBytesMax)
      let digits = line.prefix { hexDigit($0) != nil }
      let rest = line[digits.endIndex...]
      guard let count = Int(text(of: digits), radix: 16), rest.isEmpty || rest.first == UInt8(ascii: ";") else {
        throw .malformed("not a chunk size: \(quoted(line))")
      }
      if count == 0 { break }
      try readBytes(count, of: &request)
      _ = try bodyLine(atMost: 2, orElse: "a chunk is longer than it says")
    }
    var left = Self.trailerBytesMax
    while true {
      let line = try bodyLine(atMost: left)
      left -= line.count + 2
      if line.isEmpty { return }
      let field = try field(line)
      request.trailers.add(field.name, field.value)
    }
  }

  private func bodyLine(
    atMost count: Int, orElse complaint: String = "a line within a chunked body is too long"
  ) throws(Failure) -> ArraySlice<UInt8> {
    var partial = 0
    do {
      guard let line = try wire.takeLine(atMost: count, partial: &partial) else {
        throw Failure.malformed(complaint)
      }
      return try withoutLineEnd(line)
    } catch let failure as Failure {
      throw failure
    } catch {
      throw .endedInBody
    }
  }

  // MARK: Text

  /// Whether the bytes are a token (RFC 9110, section 5.6.2).
  private func isToken(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.isEmpty
      && bytes.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: Self.tokenMarks.contains(byte)
        }
      }
  }

  private static let tokenMarks = Array("!#$%&'*+-.^_`|~".utf8)
}

/// Formats bytes for a message: in quotes, with everything but plain ASCII escaped, at most 120 bytes of them.
func quoted(_ bytes: some Collection<UInt8>) -> String {
  let shown = bytes.prefix(120).map { byte in
    switch byte {
    case UInt8(ascii: "\r"): "\\r"
    case UInt8(ascii: "\n"): "\\n"
    case UInt8(ascii: "\t"): "\\t"
    case UInt8(ascii: "\\"), UInt8(ascii: "\""): "\\" + latin1Text(of: [byte])
    case 0x20...0x7e: latin1Text(of: [byte])
    default: "\\x" + hexadecimal(byte)
    }
  }
  return "\"" + shown.joined() + (bytes.count > 120 ? "\" and \(bytes.count - 120) bytes more" : "\"")
}
