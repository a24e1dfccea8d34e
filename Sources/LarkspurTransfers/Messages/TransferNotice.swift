/// What the executor of a background session tells the program that is attached.
public enum TransferNotice: Hashable, Sendable {
  /// The record of a task as it is now: after its creation, after a response, and when the task has ended. Events in the
  /// record are delivered by the program, which acknowledges each one once.
  case changed(TransferRecord)
  /// The counts of a running task. Not every change is told.
  case progress(task: Int, TransferRecord.Counts)
  /// A question for the program's delegate. The task waits for the answer as long as the program is attached.
  case question(UInt64, task: Int, TransferQuestion)
  /// The executor is gone, and no more notices come: a service that has been stopped or killed.
  ///
  /// - Parameter reason: A sentence for people.
  case lost(reason: String)
}

/// A question for the delegate of a background session.
public enum TransferQuestion: Hashable, Sendable {
  /// The task's earliest time has come (`willBeginDelayedRequest`).
  case beginDelayed
  /// A server or proxy asks for credentials, or the program decides about a certificate (`didReceive challenge`).
  case challenge(TransferChallenge)
}

/// An answer of the delegate.
public enum TransferAnswer: Hashable, Sendable {
  case continueLoading
  case useNewRequest(TransferRequest)
  case cancel
  case challenge(disposition: Disposition, credential: Credential?)

  /// The raw values are those of `URLSession.AuthChallengeDisposition`.
  public enum Disposition: UInt8, Hashable, Sendable {
    case useCredential = 0
    case performDefaultHandling = 1
    case cancelAuthenticationChallenge = 2
    case rejectProtectionSpace = 3
  }

  public enum Credential: Hashable, Sendable {
    /// A user and a password. `persistence` is the raw value of `URLCredential.Persistence`.
    case password(user: String, password: String, persistence: UInt8)
    /// The certificates of the question are to be trusted.
    case trust
  }
}

/// A challenge, as far as it can travel to another process.
public struct TransferChallenge: Hashable, Sendable {
  public var host: String
  public var port: Int
  /// The protocol, for example `https`.
  public var scheme: String?
  public var realm: String?
  /// The authentication method, with the value of Foundation's constant.
  public var method: String
  /// The kind of the proxy that asks, or `nil` if a server asks.
  public var proxyKind: String?
  public var previousFailures: Int
  /// The server's certificates in DER form, the server's own first. Empty unless the certificate is in question.
  public var certificates: [[UInt8]]

  public init(
    host: String, port: Int, scheme: String?, realm: String?, method: String, proxyKind: String?,
    previousFailures: Int, certificates: [[UInt8]]
  ) {
    self.host = host
    self.port = port
    self.scheme = scheme
    self.realm = realm
    self.method = method
    self.proxyKind = proxyKind
    self.previousFailures = previousFailures
    self.certificates = certificates
  }
}
