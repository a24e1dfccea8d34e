import Foundation

extension URL {
  /// What ``URLSession/shared`` gets from this URL, byte by byte, whatever the status of the answer. Each iterator loads it anew, from
  /// its first `next` on.
  public var resourceBytes: AsyncBytes { AsyncBytes(of: self) }

  /// The same as text, line by line: see ``AsyncLineSequence``.
  public var lines: AsyncLineSequence<AsyncBytes> { resourceBytes.lines }

  /// The bytes behind a URL. Reading throws what loading throws; see ``URLSession/AsyncBytes``.
  public struct AsyncBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8

    private let url: URL

    init(of url: URL) { self.url = url }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url) }

    /// Loads when it is first asked.
    public struct AsyncIterator: AsyncIteratorProtocol {
      /// Nil: it has been asked for.
      private var url: URL?
      @usableFromInline var bytes: URLSession.AsyncBytes.Iterator?

      init(_ url: URL) { self.url = url }

      @inlinable
      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        if bytes == nil { try await begin() }
        return try await bytes?.next(isolation: actor)
      }

      @usableFromInline
      mutating func begin() async throws {
        guard let url = url.take() else { return }
        bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator()
      }
    }
  }
}
