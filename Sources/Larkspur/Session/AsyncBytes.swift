import Foundation

extension URLSession {
  /// The bytes of a body as they come. A reader that is slow slows the server down: nothing is read ahead but one piece.
  /// When the last copy and iterator go, the task is cancelled if it is not over.
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

    /// Hands the bytes out one by one, from the piece that came last.
    public struct Iterator: AsyncIteratorProtocol {
      private let life: Life
      private var piece: [UInt8] = []
      private var position = 0

      init(_ life: Life) { self.life = life }

      public mutating func next() async throws -> UInt8? { try await next(isolation: #isolation) }

      /// The same, without leaving the caller's actor: a byte that is there already costs no hop.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        if position < piece.count {
          position += 1
          return piece[position - 1]
        }
        return try await nextOfPiece(isolation: actor)
      }

      private mutating func nextOfPiece(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
        let life = life
        repeat {
          let next = try await withTaskCancellationHandler {
            try await life.channel.read()
          } onCancel: {
            life.task.cancel()
          }
          guard let next else { return nil }
          piece = next
          position = 0
        } while piece.isEmpty
        position = 1
        return piece[0]
      }
    }
  }
}
