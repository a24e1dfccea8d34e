import Foundation

extension URL {
  /// The bytes that ``URLSession/shared`` loads from this URL, whatever the status of the response. Each iterator loads
  /// the URL anew, starting with its first `next`.
  public var resourceBytes: AsyncBytes { AsyncBytes(of: self) }

  /// The lines of the text that ``URLSession/shared`` loads from this URL: see ``AsyncLineSequence``.
  public var lines: AsyncLineSequence<AsyncBytes> { resourceBytes.lines }
}

/// The bytes behind a URL. Reading throws the errors of loading; see ``URLSession/AsyncBytes``.
public struct URLAsyncBytes: AsyncSequence, Sendable {
  public typealias Element = UInt8

  private let url: URL

  init(of url: URL) { self.url = url }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url) }

  /// Starts the load at the first `next`.
  public struct AsyncIterator: AsyncIteratorProtocol {
    /// The URL, or `nil` once the load has started.
    private var url: URL?
    @usableFromInline var bytes: URLSession.AsyncBytes.Iterator?

    init(_ url: URL) { self.url = url }

    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
      if bytes == nil { try await start() }
      return try await bytes?.next(isolation: actor)
    }

    @usableFromInline
    mutating func start() async throws {
      guard let url = url.take() else { return }
      bytes = try await URLSession.shared.bytes(from: url).0.makeAsyncIterator()
    }
  }
}
