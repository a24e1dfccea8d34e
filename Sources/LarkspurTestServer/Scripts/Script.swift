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
    /// The steps in their order.
    public var steps: [Step]

    /// Creates a script of these steps.
    public init(_ steps: [Step]) {
      self.steps = steps
    }

    /// Creates a script of the steps of the literal.
    public init(arrayLiteral elements: Step...) {
      steps = elements
    }

    /// Returns the steps of the first script, and then those of the second one.
    public static func + (first: Script, second: Script) -> Script { Script(first.steps + second.steps) }

    /// Whether the script does the TLS handshake itself.
    var startsBeforeHandshake: Bool {
      if case .beforeHandshake? = steps.first?.kind { true } else { false }
    }
  }
}
