import LarkspurBytes

/// A parsed response head: its values, and the positions of its parts. Positions count from the head's first byte.
public struct ResponseHead {
  public internal(set) var status = 0
  /// 0 for HTTP/1.0; 1 for HTTP/1.1 and every later 1.x.
  public internal(set) var minorVersion = 1
  public internal(set) var reason = 0..<0
  public internal(set) var fields = FieldTable()
  /// The head's size, its empty line included.
  public internal(set) var byteCount = 0
  /// How the end of the body is found.
  public internal(set) var framing = BodyFraming.none
  /// Whether the connection may be used again after this response. The server, the request and the framing decide.
  public internal(set) var isPersistent = false
  /// Whether the head has a `Keep-Alive` field, so that heads without one, which are most, are not searched. Always
  /// `false` before a tunnel.
  public internal(set) var hasKeepAlive = false
  /// The value of `Content-Length`, or `nil` if the head has none or a tunnel follows. After a HEAD request and with a
  /// 304, no body follows.
  public internal(set) var contentLength: Int?

  public init() {}

  /// Empties the head and keeps its memory.
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
  /// The body ends when the server closes the connection. Without TLS, a body that was cut short may look complete.
  case untilClose
  /// No body: another protocol follows the head (101, or 2xx to CONNECT).
  case tunnel
}

/// The facts of a request that the parser needs to understand the response.
public struct RequestContext: Hashable, Sendable {
  public enum Method: Hashable, Sendable {
    case head, connect, other
  }

  public var method: Method
  /// Whether the request carried `Upgrade`. Without it a 101 is an error.
  public var offersUpgrade: Bool
  /// Whether the request carried `Connection: close`, so that the connection ends with the response.
  public var closesConnection: Bool
  /// Whether the request carried `Expect: 100-continue` and has a body, which waits for the server's consent.
  public var expectsContinue = false

  public init(method: Method = .other, offersUpgrade: Bool = false, closesConnection: Bool = false) {
    self.method = method
    self.offersUpgrade = offersUpgrade
    self.closesConnection = closesConnection
  }
}
