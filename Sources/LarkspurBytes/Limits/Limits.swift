/// Limits on the memory and work that a peer can cause. Every limit is inclusive: the value itself passes, and one more
/// fails.
public struct Limits: Hashable, Sendable {
  /// The size of a response head in bytes, from the `H` of `HTTP/` to the line feed of its empty line. Without this
  /// limit, a head that never ends uses up the memory.
  public var headBytesMax = 300 * 1024

  /// The size of a status line or a field line in bytes, with folded continuations and without the CRLF. Without this
  /// limit, one endless line uses up the whole head's allowance.
  public var fieldLineBytesMax = 64 * 1024

  /// The number of field lines in a head or a trailer section. Without this limit, a million tiny lines take a table
  /// entry each, and quadratic time where fields are compared with each other.
  public var fieldsMax = 1000

  /// The number of interim (1xx) responses before a final response, beside those that the request's content earns.
  /// Without this limit, an endless row of `100 Continue` keeps an exchange alive that never completes.
  public var interimResponsesMax = 32

  /// The number of bytes of a request's content that earn one more interim response. A server may report the progress
  /// of an upload by interim responses (draft-ietf-httpbis-resumable-upload-12, section 5): their number is
  /// proportional to the bytes sent.
  public var bytesPerInterimResponse = 1024

  /// The size of the chunk extensions of one response in bytes, each counted from its semicolon to the end of its line.
  /// Extensions are discarded. Without this limit, the client reads gigabytes for a body of a few bytes.
  public var chunkExtensionBytesMax = 16 * 1024

  /// The size of a trailer section in bytes, with the CRLF of each line and without the empty line. A trailer section
  /// is held in memory until it is complete, like a head.
  public var trailerBytesMax = 16 * 1024

  public init() {}
}
