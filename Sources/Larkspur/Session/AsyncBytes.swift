import Foundation
import LarkspurBytes

/// The bytes of a body as they arrive. A slow reader slows the server down: at most one piece is read ahead. When the
/// last copy and the last iterator are gone, the task is cancelled unless it is over. The next iterator continues
/// with the bytes that an iterator has not returned.
///
/// In an optimised program a byte costs about 1 ns. On an actor, the main actor included, a byte costs about 20 ns,
/// because Swift checks for each byte that the code still runs on the actor. Put loops over large bodies into a
/// `@concurrent` function.
public struct URLSessionAsyncBytes: AsyncSequence, Sendable {
  public typealias Element = UInt8
  public typealias AsyncIterator = Iterator

  private let lifetime: Lifetime
  /// The task that loads the bytes.
  public var task: URLSessionDataTask { lifetime.task }

  init(_ channel: BytesChannel, of task: URLSessionDataTask) { lifetime = Lifetime(channel, task) }

  /// Starts the task, and waits for the head of the response. Cancelling the caller's task cancels the load.
  func response() async throws -> URLResponse {
    task.resume()
    let answer = await withTaskCancellationHandler {
      await lifetime.channel.response.get()
    } onCancel: {
      task.cancel()
    }
    guard let answer else { throw URLError.make(.cancelled) }
    return try answer.get()
  }

  public func makeAsyncIterator() -> Iterator { Iterator(lifetime) }

  /// Returns the next piece of the body, or `nil` at its end. For a reader that takes whole pieces, and has no iterator.
  func nextPiece() async throws -> [UInt8]? { try await lifetime.read() }

  final class Lifetime: Sendable {
    let channel: BytesChannel
    let task: URLSessionDataTask

    init(_ channel: BytesChannel, _ task: URLSessionDataTask) {
      self.channel = channel
      self.task = task
    }

    deinit { task.cancel() }

    /// Waits for the next piece. Cancelling the caller's task cancels the load.
    func read() async throws -> [UInt8]? {
      try await withTaskCancellationHandler {
        try await channel.read()
      } onCancel: {
        task.cancel()
      }
    }
  }

  /// Returns the bytes one by one, from the piece that arrived last. When the iterator and its copies are gone, the
  /// bytes that it has not returned go to the next iterator: a program may take one line, do something else, and take
  /// the next line.
  ///
  /// Performance: without `@inlinable` a byte costs 30 ns (`bytes-1g` of the benchmarks).
  public struct Iterator: AsyncIteratorProtocol {
    @usableFromInline let reader: Reader

    init(_ lifetime: Lifetime) { reader = Reader(lifetime) }

    @inlinable
    public mutating func next() async throws -> UInt8? {
      if let byte = reader.take() { return byte }
      return try await reader.nextOfPiece(isolation: nil)
    }

    /// Returns the next byte without leaving the caller's actor: a byte that has already arrived costs no hop.
    @inlinable
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
      if let byte = reader.take() { return byte }
      return try await reader.nextOfPiece(isolation: actor)
    }
  }

  /// The bytes that an iterator shares with its copies.
  @usableFromInline
  final class Reader: UnreadBytes {
    private let lifetime: Lifetime
    /// Whether reading is over, because the body has ended or reading has failed. Also `true` while a read waits.
    private var isOver = false

    init(_ lifetime: Lifetime) { self.lifetime = lifetime }

    deinit {
      let left = rest
      if !left.isEmpty { lifetime.channel.putBack(left) }
    }

    @usableFromInline
    func nextOfPiece(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
      while try await nextPiece(isolation: actor) {
        if let byte = take() { return byte }
      }
      return nil
    }

    /// Waits for the next piece, when all bytes of the one before have been taken.
    ///
    /// - Returns: `false` if there is none, because reading is over.
    func nextPiece(isolation actor: isolated (any Actor)?) async throws -> Bool {
      guard !isOver else { return false }
      let lifetime = lifetime
      isOver = true
      guard let piece = try await lifetime.read() else { return false }
      rest = piece
      isOver = false
      return true
    }
  }
}
