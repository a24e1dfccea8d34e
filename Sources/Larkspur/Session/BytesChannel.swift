import Foundation
import Synchronization

/// One piece of a body on its way from a task to its reader. The task waits while a piece is there: so a slow reader stops
/// the socket.
final class BytesChannel: Sendable {
  private struct State {
    var piece: [UInt8]?
    /// What a reader has left of a piece before that one.
    var left: [UInt8]?
    var end: Result<Void, any Error>?
    /// One as a rule. A program may read on two tasks, and then each of them gets some of the pieces.
    var readers: [CheckedContinuation<Void, Never>] = []
    var writer: CheckedContinuation<Void, Never>?
    var isAbandoned = false

    mutating func takeReaders() -> [CheckedContinuation<Void, Never>] {
      defer { readers = [] }
      return readers
    }
  }

  private let state = Mutex(State())
  /// The head of the response, which comes first.
  let response = Question<Result<URLResponse, any Error>>()

  // MARK: - The task's side

  /// Returns when the reader has taken the piece, or wants no more: false.
  func write(_ piece: [UInt8]) async -> Bool {
    let readers = state.withLock { state in
      state.piece = piece
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
    await withCheckedContinuation { continuation in
      let goesOn = state.withLock { state -> Bool in
        if state.piece == nil || state.isAbandoned { return true }
        state.writer = continuation
        return false
      }
      if goesOn { continuation.resume() }
    }
    return state.withLock { !$0.isAbandoned }
  }

  func finish(_ result: Result<Void, any Error>) {
    let readers = state.withLock { state in
      if state.end == nil { state.end = result }
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
    if case .failure(let error) = result { response.answer(.failure(error)) }
  }

  /// The task is cancelled: what waits here waits no longer.
  func interrupt() {
    let writer = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.isAbandoned = true
      return state.writer.take()
    }
    writer?.resume()
  }

  // MARK: - The reader's side

  /// Nil: the body is complete.
  func read() async throws -> [UInt8]? {
    while true {
      let (piece, end, writer) = state.withLock {
        state -> ([UInt8]?, Result<Void, any Error>?, CheckedContinuation<Void, Never>?) in
        if let left = state.left.take() { return (left, nil, nil) }
        guard let piece = state.piece.take() else { return (nil, state.end, nil) }
        return (piece, nil, state.writer.take())
      }
      writer?.resume()
      if let piece { return piece }
      if let end {
        try end.get()
        return nil
      }
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state -> Bool in
          if state.left != nil || state.piece != nil || state.end != nil { return true }
          state.readers.append(continuation)
          return false
        }
        if goesOn { continuation.resume() }
      }
    }
  }

  /// The end of a piece that a reader has not used, for the next reader.
  func putBack(_ rest: [UInt8]) {
    let readers = state.withLock { state in
      state.left = rest + (state.left ?? [])
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
  }
}
