import Foundation
import Synchronization

/// The content that a delegate has not been told of yet, which does not hold the task up. There is one call at most on its way:
/// one that is slower than the network hears of more at a time.
final class UntoldContent: Sendable {
  struct Piece {
    /// Empty if it is in a file.
    var data = Data()
    var count: Int64 = 0
    /// How many bytes have come with it and before.
    var total: Int64 = 0
  }

  private struct State {
    var piece = Piece()
    var isTelling = false
  }

  private let state = Mutex(State())

  /// Whether a call has to be made. Otherwise the one that is on its way says it as well.
  func add(_ data: Data, _ count: Int) -> Bool {
    state.withLock { state in
      state.piece.data += data
      state.piece.count += Int64(count)
      state.piece.total += Int64(count)
      defer { state.isTelling = true }
      return !state.isTelling
    }
  }

  /// The call was dropped on its way: what it had to say is the next one's.
  func callIsLost() { state.withLock { $0.isTelling = false } }

  /// What is to be said next. Nil: all has been said, and the call is over.
  func take() -> Piece? {
    state.withLock { state in
      guard state.piece.count > 0 else {
        state.isTelling = false
        return nil
      }
      defer { state.piece = Piece(total: state.piece.total) }
      return state.piece
    }
  }
}
