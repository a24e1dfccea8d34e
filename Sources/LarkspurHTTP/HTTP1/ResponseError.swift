/// Why a response was refused. In every case the server is at fault: by bytes that it sent, or by the end of the
/// connection.
public enum ResponseError: Error, Hashable, Sendable {
  /// The response does not begin with `HTTP/`: another protocol, HTTP/0.9, or stray bytes.
  case notHTTP
  /// A version other than `1.` and one digit, or no space after the version.
  case versionUnsupported
  /// The status is not three digits from 100 to 999, or another byte than SP, CR or LF follows it.
  case statusInvalid
  /// A control character other than HTAB in the reason phrase.
  case reasonInvalid
  /// A CR without an LF after it.
  case bareCR
  /// An LF without a CR before it: in a head or trailer section whose lines have to end with CRLF, or that has lines of
  /// both kinds; or after a chunk's size.
  case bareLF
  /// White space before the first field of a head or trailer section.
  case whitespaceBeforeFirstField
  /// A field name that is empty or holds a byte that is not a token character.
  case fieldNameInvalid
  /// White space in a field name, or between the name and its colon.
  case whitespaceInFieldName
  /// NUL or another control character, except HTAB, in a field value.
  case fieldValueInvalid
  case headTooLarge(limit: Int)
  case fieldLineTooLong(limit: Int)
  case tooManyFields(limit: Int)
  case tooManyInterimResponses(limit: Int)
  /// `Content-Length` is not a plain decimal number that fits in an `Int`.
  case contentLengthInvalid
  /// `Content-Length` has two different values, or one number written in two ways.
  case contentLengthConflicting
  /// A transfer coding other than `chunked`, or `chunked` not exactly once.
  case transferCodingUnsupported
  /// A 101 in response to a request without `Upgrade`.
  case upgradeUnsolicited
  case chunkSizeInvalid
  case chunkSizeTooLarge
  case chunkExtensionInvalid
  case chunkExtensionsTooLarge(limit: Int)
  /// A chunk's data is not followed by CRLF, so its size was wrong.
  case chunkEndMissing
  case trailersTooLarge(limit: Int)
  /// The connection ended inside the response.
  case truncated(TruncationPoint)
  /// Bytes that belong to no request.
  case unsolicitedBytes

  /// The part of the response that the end of the connection cut off.
  public enum TruncationPoint: Hashable, Sendable {
    /// No byte of the response had arrived.
    case beforeHead
    /// The status line of the final response was not complete. Interim responses may have arrived before it.
    case statusLine
    /// The status line was complete, and the empty line after the fields was still to come.
    case head
    /// A body with `Content-Length` was incomplete: `missing` bytes were still to come.
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
