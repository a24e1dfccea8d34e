/// Why a peer's response was refused. Every case is the peer's doing: the bytes that it sent, or stopped sending.
public enum ResponseError: Error, Hashable, Sendable {
  /// The response does not begin with `HTTP/`: another protocol, HTTP/0.9, or stray bytes.
  case notHTTP
  /// A version other than HTTP/1.x.
  case versionUnsupported
  /// The status is not three digits from 100 to 999.
  case statusInvalid
  /// A control character in the reason phrase.
  case reasonInvalid
  /// A CR without LF behind it.
  case bareCR
  /// An LF without CR before it: in a head or trailer section with lines that end with CRLF, or in a chunk's line.
  case bareLF
  /// White space between the status line and the first field.
  case whitespaceBeforeFirstField
  /// A field name that is empty or holds a byte that is not a token character.
  case fieldNameInvalid
  /// White space in a field name, or between the name and its colon.
  case whitespaceInFieldName
  /// NUL or another control character in a field value.
  case fieldValueInvalid
  case headTooLarge(limit: Int)
  case fieldLineTooLong(limit: Int)
  case tooManyFields(limit: Int)
  case tooManyInterimResponses(limit: Int)
  /// `Content-Length` is not a plain decimal number that fits.
  case contentLengthInvalid
  /// `Content-Length` says two different things.
  case contentLengthConflicting
  /// A transfer coding other than `chunked`, or `chunked` not exactly once.
  case transferCodingUnsupported
  /// A 101 that nobody asked for.
  case upgradeUnsolicited
  case chunkSizeInvalid
  case chunkSizeTooLarge
  case chunkExtensionInvalid
  case chunkExtensionsTooLarge(limit: Int)
  /// A chunk's data is not followed by CRLF: the chunk size lied.
  case chunkEndMissing
  case trailersTooLarge(limit: Int)
  /// The connection ended inside the response.
  case truncated(Place)
  /// Bytes that belong to no request.
  case unsolicitedBytes

  /// What the connection's end cut off.
  public enum Place: Hashable, Sendable {
    /// Not a single byte of the response had arrived.
    case beforeHead
    /// The status line of the final response was not complete. Interim responses may have come before it.
    case statusLine
    /// The status line was complete, and the empty line behind the fields was still to come.
    case head
    /// So many bytes of a `Content-Length` body were still to come.
    case body(missing: Int)
    case chunkedBody
    case trailers
  }
}

extension ResponseError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notHTTP: "the response does not begin with an HTTP/1 status line"
    case .versionUnsupported: "the response's HTTP version is not 1.x"
    case .statusInvalid: "the status code is not a number from 100 to 999"
    case .reasonInvalid: "the reason phrase holds a control character"
    case .bareCR: "a CR without an LF behind it"
    case .bareLF: "an LF without a CR before it, beside lines that end with CRLF"
    case .whitespaceBeforeFirstField: "white space before the first header field"
    case .fieldNameInvalid: "a header field's name is empty or holds an illegal character"
    case .whitespaceInFieldName: "white space in a header field's name or before its colon"
    case .fieldValueInvalid: "a header field's value holds a control character"
    case .headTooLarge(let limit): "the response head is larger than \(limit) bytes"
    case .fieldLineTooLong(let limit): "a line of the response head is longer than \(limit) bytes"
    case .tooManyFields(let limit): "more than \(limit) header fields"
    case .tooManyInterimResponses(let limit): "more than \(limit) interim (1xx) responses"
    case .contentLengthInvalid: "Content-Length is not a number that fits"
    case .contentLengthConflicting: "Content-Length gives conflicting values"
    case .transferCodingUnsupported: "a Transfer-Encoding other than a single \"chunked\""
    case .upgradeUnsolicited: "101 Switching Protocols without a request to switch"
    case .chunkSizeInvalid: "a chunk size is not a plain hexadecimal number"
    case .chunkSizeTooLarge: "a chunk size is too large"
    case .chunkExtensionInvalid: "a malformed chunk extension"
    case .chunkExtensionsTooLarge(let limit): "more than \(limit) bytes of chunk extensions"
    case .chunkEndMissing: "a chunk's data is longer than its size says"
    case .trailersTooLarge(let limit): "a trailer section larger than \(limit) bytes"
    case .truncated(.beforeHead): "the server closed the connection without a response"
    case .truncated(.statusLine): "the connection ended before the response's status line was complete"
    case .truncated(.head): "the connection ended inside the response head"
    case .truncated(.body(let missing)): "the connection ended with \(missing) bytes of the body missing"
    case .truncated(.chunkedBody): "the connection ended before the last chunk"
    case .truncated(.trailers): "the connection ended inside the trailer section"
    case .unsolicitedBytes: "the server sent bytes that answer no request"
    }
  }
}
