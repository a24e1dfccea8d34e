import Foundation

extension URLSessionEventSource {
  /// The events of a source.
  ///
  /// Nothing is read ahead: a slow reader slows the server down. Cancelling the reader's task closes the connection,
  /// and throws `URLError.cancelled`, as loads of sessions do.
  public struct Events: AsyncSequence, Sendable {
    public typealias Element = ServerSentEvent

    private let source: URLSessionEventSource

    init(_ source: URLSessionEventSource) { self.source = source }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(source) }

    /// Reads one event after the other. The connection closes when the iterator and its copies are gone.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private let connection: EventSourceConnection

      init(_ source: URLSessionEventSource) { connection = EventSourceConnection(source) }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
        try await connection.next(isolation: actor)
      }
    }
  }
}

extension URLError {
  /// The key of ``failingResponse`` in `userInfo`.
  static let failingResponseKey = "LarkspurFailingResponse"

  /// The response that has ended a ``URLSessionEventSource`` with `.badServerResponse`, or `nil` if the error has
  /// another cause.
  public var failingResponse: URLResponse? { userInfo[Self.failingResponseKey] as? URLResponse }
}
