/// What is left to be sent of the present request, and of the requests queued behind it.
///
///     done -> queue -> done
///     done -> awaiting100Continue -> body -> done
///     done -> body -> done
///
/// Every state goes to `done` when nothing more of the request is wanted. A request queued behind one that has left goes
/// from `done` to `queue`.
enum RequestSender {
  /// Nothing is left: everything has been sent or is not wanted any more, or no request has begun.
  case done
  /// Heads and small bodies, all of them in the connection's output.
  case queue
  /// The head, if it has not left yet. The body waits for `100 Continue`.
  case awaiting100Continue
  /// What is in the connection's output, and behind it a body that leaves piece by piece.
  case body

  /// Whether the present request has a body that leaves piece by piece, and is not sent yet.
  var hasUpload: Bool {
    switch self {
    case .done, .queue: false
    case .awaiting100Continue, .body: true
    }
  }
}
