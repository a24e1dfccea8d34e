import Foundation
import Larkspur

/// Turns an error of a session into the message to the user.
struct SessionFailure {
  let failure: CommandFailure

  /// - Parameter isLate: Whether a time-out is that of `--max-time`, if there is one.
  init(_ error: any Error, url: URL?, _ settings: SessionSetUp, isLate: Bool = true) {
    let error = error as? URLError ?? URLError(.unknown)
    let peer = Self.peer(error.failingURL ?? url)
    if error.code == .cancelled {
      failure = CommandFailure(.signal(2))
    } else {
      let status = ExitStatus(error)
      let option = status == .timedOut && settings.hasMaxTime && isLate ? " (--max-time)" : ""
      failure = CommandFailure(status, "\(peer): \(Format.visible(error.localizedDescription.utf8))\(option)")
    }
  }

  /// Returns the host and the port of a URL.
  static func peer(_ url: URL?) -> String {
    guard let url, let host = url.host(percentEncoded: true) else { return "the server" }
    let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    return "\(name):\(url.port ?? (["https", "wss"].contains(url.scheme?.lowercased()) ? 443 : 80))"
  }
}
