extension TestServer {
  /// What the server does on a connection, step by step.
  ///
  /// ```swift
  /// server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close])
  /// ```
  ///
  /// A script is a value: keep it, join it with `+`, give it to as many connections as you like. Behind its last step
  /// the connection is closed; if it has been half closed, then only when the client closes.
  ///
  /// Only expectations fail. A client that goes away while the server sends or waits ends the script, and that is all.
  public struct Script: Sendable, ExpressibleByArrayLiteral {
    public var steps: [Step]

    public init(_ steps: [Step]) {
      self.steps = steps
    }

    public init(arrayLiteral elements: Step...) {
      steps = elements
    }

    public static func + (first: Script, second: Script) -> Script { Script(first.steps + second.steps) }

    /// Whether the script is to do the handshake itself.
    var startsBeforeHandshake: Bool {
      if case .beforeHandshake? = steps.first?.kind { true } else { false }
    }
  }
}
