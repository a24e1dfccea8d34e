extension TestServer {
  /// The server's actions on a connection, step by step.
  ///
  /// ```swift
  /// server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close])
  /// ```
  ///
  /// A script is a value: keep it, join it with `+`, give it to as many connections as you like. After the last step
  /// the server closes the connection; if it has half closed it, then as soon as the client closes.
  ///
  /// A script fails only if an expectation is not met, or if a step is not possible (such as sending after a close). If
  /// the client goes away while the server sends or waits, the script ends without a failure.
  public struct Script: Sendable, ExpressibleByArrayLiteral {
    public var steps: [Step]

    public init(_ steps: [Step]) {
      self.steps = steps
    }

    public init(arrayLiteral elements: Step...) {
      steps = elements
    }

    public static func + (first: Script, second: Script) -> Script { Script(first.steps + second.steps) }

    /// Whether the script does the TLS handshake itself.
    var startsBeforeHandshake: Bool {
      if case .beforeHandshake? = steps.first?.kind { true } else { false }
    }
  }
}
