import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// An event of a load: of its task, of its requests, or of a connection.
///
/// Events contain secrets: passwords in URLs, tokens and cookies in heads, and bodies. ``redacted`` takes them out.
public struct HTTPEvent: Sendable {
  /// The choice between a stored response and the server's.
  public enum CacheUse: Hashable, Sendable {
    /// The stored response is delivered, and no request is made.
    case served
    /// The stored response is stale. The request asks the server whether it is still valid.
    case validating
    /// The server has confirmed the stored response, or could not be reached, and the stored response is delivered.
    case storedUsed
    /// The response is stored when its body is complete.
    case storing
  }

  /// What happened.
  public enum Kind: Sendable {
    /// The task starts, with the request that the program made.
    case started(method: String, url: String)
    /// A request is about to be sent, or to wait for a connection: the first one, or one after a redirection, a challenge,
    /// or a retry.
    case request(method: String, url: String)
    /// The cache has decided.
    case cache(CacheUse)
    /// An interceptor retries the request after this time.
    case retry(after: Duration)
    /// A connection is opened, carries an exchange, or ends.
    case connection(ConnectionEvent)
    /// The task ends, with the description of its error, or `nil` if it succeeded.
    case ended(error: String?)
  }

  /// The number of the task: of a session's task (`taskIdentifier`), or of a client's load, counted from 1. `nil` for events
  /// of a connection that no task uses. A connection is opened for the task that waits longest; another task may use
  /// the connection first.
  public let task: Int?
  /// The number of the connection in its session or client, counted from 1. `nil` for events of tasks.
  public let connection: Int?
  /// The time of the event on the clock of the machine, which is never set: seconds since an unspecified moment.
  public var time: Duration { .nanoseconds(Int64(clamping: moment.nanoseconds)) }
  package let moment: Deadline
  /// What happened.
  public let kind: Kind

  package init(_ kind: Kind, task: Int?, connection: Int? = nil, at time: Deadline) {
    self.kind = kind
    self.task = task
    self.connection = connection
    moment = time
  }

  private init(_ kind: Kind, of event: HTTPEvent) {
    self.kind = kind
    task = event.task
    connection = event.connection
    moment = event.moment
  }

  /// The event without secrets: without user, password and known parameters (such as `access_token`) in URLs, without the
  /// values of `Authorization`, `Cookie`, `Set-Cookie` and other fields of that kind, and without the content of bodies.
  public var redacted: HTTPEvent {
    let kind: Kind =
      switch kind {
      case .started(let method, let url): .started(method: method, url: Redaction.url(url))
      case .request(let method, let url): .request(method: method, url: Redaction.url(url))
      case .connection(let event): .connection(event.redacted)
      case .cache, .retry, .ended: kind
      }
    return HTTPEvent(kind, of: self)
  }
}

extension ConnectionEvent {
  fileprivate var redacted: ConnectionEvent {
    switch self {
    case .requestStarted(let head, let bytes, let isReused):
      .requestStarted(head: Redaction.head(head), bytes: bytes, isReused: isReused)
    case .headReceived(let status, let bytes): .headReceived(status: status, bytes: Redaction.head(bytes))
    case .interimReceived(let status, let bytes, _):
      .interimReceived(status: status, bytes: Redaction.head(bytes), fields: FieldTable())
    case .requestContent: .requestContent([])
    case .responseContent: .responseContent([])
    case .resolving, .resolved, .connecting, .connectFailed, .connected, .tunnelling, .tunnelled, .securing, .secured,
      .openFailed, .bodySent, .requestSent, .bodyReceived, .completed, .handedOver, .failed, .closed:
      self
    }
  }
}
