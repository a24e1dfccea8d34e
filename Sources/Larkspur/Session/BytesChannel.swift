import Foundation
import LarkspurBytes
import Synchronization

/// Carries the pieces of a body, one at a time, from a task to its reader. The task waits while a piece is in the
/// channel, so a slow reader stops reads of the socket.
final class BytesChannel: Sendable {
  private struct State {
    var piece: [UInt8]?
    /// The bytes that a reader has not used of an earlier piece.
    var left: [UInt8]?
    var end: Result<Void, any Error>?
    /// The readers that wait; usually at most one. If a program reads from two tasks, each of them gets some of the
    /// pieces.
    var readers: [CheckedContinuation<Void, Never>] = []
    var writer: CheckedContinuation<Void, Never>?
    var isAbandoned = false

    mutating func takeReaders() -> [CheckedContinuation<Void, Never>] {
      defer { readers = [] }
      return readers
    }
  }

  private let state = Mutex(State())
  /// How long the body may pause, in nanoseconds, or `nil` for the request's timeout. The head has the request's
  /// timeout in any case.
  let idleTime: UInt64?
  /// Whether the session's cache may answer, and store the response.
  let isCached: Bool
  /// The head of the response, which comes before the pieces.
  let response = OneShot<Result<URLResponse, any Error>>()

  init(idleTime: UInt64? = nil, isCached: Bool = true) {
    self.idleTime = idleTime
    self.isCached = isCached
  }

  // MARK: - The task's side

  /// Passes a piece on, and returns when a reader has taken it or the task has been cancelled.
  ///
  /// - Returns: `false` if the task has been cancelled.
  func write(_ piece: [UInt8]) async -> Bool {
    let readers = state.withLock { state in
      state.piece = piece
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
    await withCheckedContinuation { continuation in
      let resumesNow = state.withLock { state -> Bool in
        if state.piece == nil || state.isAbandoned { return true }
        state.writer = continuation
        return false
      }
      if resumesNow { continuation.resume() }
    }
    return state.withLock { !$0.isAbandoned }
  }

  func finish(_ result: Result<Void, any Error>) {
    let readers = state.withLock { state in
      if state.end == nil { state.end = result }
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
    if case .failure(let error) = result { response.set(.failure(error)) }
  }

  /// Resumes the writer, because the task has been cancelled.
  func interrupt() {
    let writer = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.isAbandoned = true
      return state.writer.take()
    }
    writer?.resume()
  }

  // MARK: - The reader's side

  /// - Returns: The next piece, or `nil` if the body is complete.
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
        let resumesNow = state.withLock { state -> Bool in
          if state.left != nil || state.piece != nil || state.end != nil { return true }
          state.readers.append(continuation)
          return false
        }
        if resumesNow { continuation.resume() }
      }
    }
  }

  /// Keeps the bytes that a reader has not used of a piece, for the next reader.
  func putBack(_ rest: [UInt8]) {
    let readers = state.withLock { state in
      state.left = rest + (state.left ?? [])
      return state.takeReaders()
    }
    for reader in readers { reader.resume() }
  }
}
