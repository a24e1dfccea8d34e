import Foundation
import Larkspur

/// Judges the end of a WebSocket.
enum SocketOutcome {
  /// Returns if the WebSocket has been closed in order, and throws the failure otherwise.
  ///
  /// - Parameter isLate: Whether the time of `--max-time` is up.
  static func check(
    _ end: SocketTransfer.Completion, at url: URL?, _ settings: SessionSetUp, isLate: Bool
  ) throws(CommandFailure) {
    let peer = SessionFailure.name(at: url)
    guard let error = end.error else {
      switch end.close?.code {
      case .normalClosure, .goingAway, .noStatusReceived, nil: return
      default:
        throw CommandFailure(
          .closedWithError, "\(peer): the server closed the WebSocket with \(end.close?.message ?? "")")
      }
    }
    var failure = SessionFailure(error, url: url, settings, isLate: isLate).failure
    if failure.status == .weirdReply {
      if end.isOpened {
        // The server has broken the rules of frames, not those of a response.
        failure.status = .receiveFailed
      } else if let status = end.response?.statusCode, status != 101 {
        let reason = HTTPURLResponse.localizedString(forStatusCode: status)
        failure = CommandFailure(.httpError, "\(peer): the server answered with \(status) \(reason)")
      }
    }
    throw failure
  }
}
