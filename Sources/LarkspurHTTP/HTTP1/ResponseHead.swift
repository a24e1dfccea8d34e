import LarkspurBytes

/// A parsed response head: what it says, and where in its bytes it says it. Positions count from the head's
/// first byte.
public struct ResponseHead {
  public internal(set) var status = 0
  /// 0 for HTTP/1.0; 1 for HTTP/1.1 and every later 1.x.
  public internal(set) var minorVersion = 1
  public internal(set) var reason = 0..<0
  public internal(set) var fields = FieldTable()
  /// The head's size, its empty line included.
  public internal(set) var byteCount = 0
  /// How the body ends.
  public internal(set) var framing = BodyFraming.none
  /// Whether the server lets the connection live on after this response.
  public internal(set) var isPersistent = false
  /// Whether there is a field `Keep-Alive`. Most responses have none, and need not be searched for it.
  public internal(set) var hasKeepAlive = false
  /// What `Content-Length` says, if it is there. For a HEAD request or a 304 no body follows it.
  public internal(set) var contentLength: Int?

  public init() {}

  /// Becomes empty, and keeps its memory.
  public mutating func forget() { reset() }

  mutating func reset() {
    status = 0
    minorVersion = 1
    reason = 0..<0
    fields.removeAll()
    byteCount = 0
    framing = .none
    isPersistent = false
    hasKeepAlive = false
    contentLength = nil
  }
}

/// How the end of a body is found (RFC 9112 6.3).
public enum BodyFraming: Hashable, Sendable {
  case none
  case length(Int)
  case chunked
  /// The body goes on until the server closes: its end cannot be told from a lost connection.
  case untilClose
  /// No body: what follows the head is another protocol (101, or 2xx to CONNECT).
  case tunnel
}

/// What the parser must know of the request to understand the response.
public struct RequestContext: Hashable, Sendable {
  public enum Method: Hashable, Sendable {
    case head, connect, other
  }

  public var method: Method
  /// The request carried `Upgrade`: only then is a 101 an answer.
  public var offersUpgrade: Bool
  /// The request carried `Connection: close`: the connection ends with the response.
  public var closesConnection: Bool
  /// The request carried `Expect: 100-continue`, and a body is to follow: it waits for the server's word.
  public var expectsContinue = false

  public init(method: Method = .other, offersUpgrade: Bool = false, closesConnection: Bool = false) {
    self.method = method
    self.offersUpgrade = offersUpgrade
    self.closesConnection = closesConnection
  }
}
