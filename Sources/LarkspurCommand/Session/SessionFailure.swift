import Foundation
import Larkspur

/// Turns an error of a session into the message to the user.
struct SessionFailure {
  let failure: CommandFailure

  /// - Parameter isLate: Whether a time-out is that of `--max-time`, if there is one.
  init(_ error: any Error, url: URL?, _ settings: SessionSetUp, isLate: Bool = true) {
    let error = error as? URLError ?? URLError(.unknown)
    let (peer, status) = (Self.peer(error.failingURL ?? url), ExitStatus(error))
    if error.code == .cancelled {
      failure = CommandFailure(.signal(2))
    } else if status != .timedOut, let peer, let cause = error.transportError {
      failure = peer.failure(cause, connectTimeout: nil, maxTime: nil)
    } else {
      let option = status == .timedOut && settings.options.maxTime != nil && isLate ? " (--max-time)" : ""
      failure = CommandFailure(status, "\(Self.name(of: peer)): \(error.localizedDescription)\(option)")
    }
  }

  /// Returns the name of the server of a URL.
  static func name(at url: URL?) -> String { name(of: peer(url)) }

  private static func name(of peer: Peer?) -> String { peer.map { "\($0)" } ?? "the server" }

  private static func peer(_ url: URL?) -> Peer? {
    guard let text = url?.absoluteString else { return nil }
    // A WebSocket opens by HTTP, on its ports.
    return (try? RequestURL(text.hasPrefix("ws") ? "http" + text.dropFirst(2) : text)).map { Peer($0, address: nil) }
  }
}
