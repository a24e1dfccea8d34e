/// The state of sending the current request, and the requests queued behind it.
///
///     done -> queue -> done
///     done -> awaiting100Continue -> body -> done
///     done -> body -> done
///
/// Every state changes to `done` when nothing more of the request is wanted. A request queued behind one that has left
/// changes `done` to `queue`.
enum RequestSender {
  /// Nothing is left to be sent: everything has been sent or is no longer wanted, or no request has begun.
  case done
  /// Heads and small bodies are left, all of them in the connection's output.
  case queue
  /// The head is left, if it has not been sent yet. The body waits for `100 Continue`.
  case awaiting100Continue
  /// The connection's output is left, and behind it a body that leaves piece by piece.
  case body

  /// Whether the current request has a body that leaves piece by piece and is not sent yet.
  var hasUpload: Bool {
    switch self {
    case .done, .queue: false
    case .awaiting100Continue, .body: true
    }
  }
}
