import Foundation

extension URLSession {
  /// The bytes of a body as they come. A reader that is slow slows the server down: nothing is read ahead but one piece.
  /// When the last copy and iterator go, the task is cancelled if it is not over. What an iterator leaves is for the next one.
  ///
  /// In an optimised program a byte costs about a nanosecond. On an actor, the main one among them, it costs twenty: there
  /// Swift looks for each byte whether it is still on that actor. Loops over large bodies belong into a `@concurrent`
  /// function.
  public struct AsyncBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8
    public typealias AsyncIterator = Iterator

    private let life: Life
    /// The task that loads them.
    public var task: URLSessionDataTask { life.task }

    init(_ channel: BytesChannel, of task: URLSessionDataTask) { life = Life(channel, task) }

    public func makeAsyncIterator() -> Iterator { Iterator(life) }

    final class Life: Sendable {
      let channel: BytesChannel
      let task: URLSessionDataTask

      init(_ channel: BytesChannel, _ task: URLSessionDataTask) {
        self.channel = channel
        self.task = task
      }

      deinit { task.cancel() }
    }

    /// Hands the bytes out one by one, from the piece that came last. What it has not handed out when it and its copies go is the next
    /// iterator's: a program may take one line, do something else, and take the next.
    ///
    /// (Without `@inlinable` a byte costs thirty nanoseconds. `bytes-1g` of the benchmarks measures it.)
    public struct Iterator: AsyncIteratorProtocol {
      @usableFromInline let reader: Reader

      init(_ life: Life) { reader = Reader(life) }

      @inlinable
      public mutating func next() async throws -> UInt8? {
        if let byte = reader.take() { return byte }
        return try await reader.nextOfPiece(isolation: nil)
      }

      /// The same, without leaving the caller's actor: a byte that is there already costs no hop.
      @inlinable
      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        if let byte = reader.take() { return byte }
        return try await reader.nextOfPiece(isolation: actor)
      }
    }

    /// What an iterator shares with its copies.
    @usableFromInline
    final class Reader: UnreadBytes {
      private let life: Life
      /// It has thrown, or returned nil.
      private var isOver = false

      init(_ life: Life) { self.life = life }

      deinit {
        let left = rest
        if !left.isEmpty { life.channel.putBack(left) }
      }

      @usableFromInline
      func nextOfPiece(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        guard !isOver else { return nil }
        let life = life
        isOver = true
        while true {
          let piece = try await withTaskCancellationHandler {
            try await life.channel.read()
          } onCancel: {
            life.task.cancel()
          }
          guard let piece else { return nil }
          rest = piece
          guard let byte = take() else { continue }
          isOver = false
          return byte
        }
      }
    }
  }
}
