/// What a peer may make us hold or do. Every limit is inclusive: the value itself passes, one more fails.
public struct Limits: Hashable, Sendable {
  /// A response head in bytes, from the `H` of `HTTP/` to the line feed of its empty line. Without it a head
  /// that never ends grows our memory for ever.
  public var headBytesMax = 300 * 1024

  /// A status line or a field line in bytes, its folded continuations included and its CRLF not. One line that
  /// never ends would otherwise use up the whole head's allowance unnoticed.
  public var fieldLineBytesMax = 64 * 1024

  /// The field lines of a head or of a trailer section. A million tiny lines cost a table entry each, and
  /// quadratic work in anything that compares them.
  public var fieldsMax = 1000

  /// The interim (1xx) responses before one final response. An endless row of `100 Continue` keeps an exchange
  /// alive that never answers.
  public var interimResponsesMax = 32

  /// The chunk extensions of one response in bytes, each counted from its semicolon to the end of its line.
  /// Extensions are thrown away: a peer could make us read gigabytes for a body of a few bytes.
  public var chunkExtensionBytesMax = 16 * 1024

  /// A trailer section in bytes, with the CRLF of each of its lines but without its empty line. Like the head,
  /// it is held until it is complete.
  public var trailerBytesMax = 16 * 1024

  public init() {}
}
