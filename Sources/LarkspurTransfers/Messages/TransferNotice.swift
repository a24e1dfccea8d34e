/// A message of the runner of a background session to the program that is attached.
public enum TransferNotice: Codable, Hashable, Sendable {
  /// The record of a task as it is now: after its creation, after a response, and when the task has ended. Events in the
  /// record are delivered by the program, which acknowledges each one once.
  case changed(TransferRecord)
  /// Progress of a running task. Updates are coalesced.
  case progress(task: Int, TransferRecord.Counts)
  /// A question for the program's delegate. The task waits for the answer as long as the program is attached.
  case question(UInt64, task: Int, TransferQuestion)
  /// The runner is gone, and no more notices come: a service that has been stopped or killed.
  ///
  /// - Parameter reason: A human-readable sentence.
  case lost(reason: String)
}

/// A question for the delegate of a background session. All but `beginDelayed` are challenges (`didReceive challenge`).
public enum TransferQuestion: Codable, Hashable, Sendable {
  /// The task's earliest begin date has been reached (`willBeginDelayedRequest`).
  case beginDelayed
  /// The response of a server or proxy asks for credentials.
  case challenge(TransferChallenge)
  /// A new connection asks whether its server is trusted.
  case trust(TransferTrust)
  /// The server of a new connection asks for a client certificate.
  case clientCertificate(TransferCertificateRequest)

  /// Whether the task waits until a program is attached that can answer. Without a program, a handshake is decided by the
  /// session's settings, and a task starts at its time.
  package var waitsForProgram: Bool { if case .challenge = self { true } else { false } }
}

/// An answer of the delegate.
public enum TransferAnswer: Codable, Hashable, Sendable {
  case continueLoading
  case useNewRequest(TransferRequest)
  /// Cancels the task, or the challenge.
  case cancel
  case challenge(disposition: Disposition, credential: Credential?)

  /// The raw values are those of `URLSession.AuthChallengeDisposition`.
  public enum Disposition: UInt8, Codable, Hashable, Sendable {
    case useCredential = 0
    case performDefaultHandling = 1
    case cancelAuthenticationChallenge = 2
    case rejectProtectionSpace = 3
  }

  public enum Credential: Codable, Hashable, Sendable {
    /// A user and a password. `persistence` is the raw value of `URLCredential.Persistence`.
    case password(user: String, password: String, persistence: UInt8)
    /// The attempt should trust the certificates of the question.
    case trust
    /// A client certificate: the certificates in DER, the client's own first, and the key in DER, not encrypted.
    case identity(certificates: [[UInt8]], key: [UInt8])
  }
}

/// The challenge of a response, as far as it can travel to another process.
public struct TransferChallenge: Codable, Hashable, Sendable {
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
  /// The user and password that default handling would send, or `nil` if there are none.
  public var proposed: TransferAnswer.Credential?

  public init(
    host: String, port: Int, scheme: String?, realm: String?, method: String, proxyKind: String?,
    previousFailures: Int, proposed: TransferAnswer.Credential?
  ) {
    self.host = host
    self.port = port
    self.scheme = scheme
    self.realm = realm
    self.method = method
    self.proxyKind = proxyKind
    self.previousFailures = previousFailures
    self.proposed = proposed
  }
}

/// The certificates of a server, and the result of their verification by the session's settings.
public struct TransferTrust: Codable, Hashable, Sendable {
  public var host: String
  public var port: Int
  /// The certificates in DER as the server sent them, its own first.
  public var sent: [[UInt8]]
  /// The chain that the verification built, in DER, from the server's certificate to the root, as far as it was found.
  public var verified: [[UInt8]]
  /// The result: OpenSSL's number, or 0 if the chain is good.
  public var code: Int32
  /// The position in the chain of the certificate with the problem.
  public var depth: Int
  /// If the chain leads to no root: the system's file of roots that cannot be used, and why.
  public var complaint: String?

  public init(
    host: String, port: Int, sent: [[UInt8]], verified: [[UInt8]], code: Int32, depth: Int, complaint: String?
  ) {
    self.host = host
    self.port = port
    self.sent = sent
    self.verified = verified
    self.code = code
    self.depth = depth
    self.complaint = complaint
  }
}

/// A server's request for a client certificate.
public struct TransferCertificateRequest: Codable, Hashable, Sendable {
  public var host: String
  public var port: Int
  /// The distinguished names in DER of the issuers that the server accepts. Empty if it accepts any.
  public var issuers: [[UInt8]]

  public init(host: String, port: Int, issuers: [[UInt8]]) {
    self.host = host
    self.port = port
    self.issuers = issuers
  }
}

extension TransferAnswer {
  var invalidPart: String? {
    switch self {
    case .continueLoading, .cancel: nil
    case .useNewRequest(let request): request.invalidPart.map { "the new request's \($0)" }
    case .challenge(_, let credential): credential?.invalidPart
    }
  }
}

extension TransferAnswer.Credential {
  /// Maximum size of a key in bytes. An RSA key of 16,384 bits has 9 KiB.
  private static let keyBytesMax = 64 << 10

  var invalidPart: String? {
    guard case .identity(let certificates, let key) = self else { return nil }
    if certificates.isEmpty || !TransferQuestion.isList(certificates) { return TransferQuestion.certificatesPart }
    return 1...Self.keyBytesMax ~= key.count ? nil : "the key"
  }
}

extension TransferNotice {
  var invalidPart: String? {
    switch self {
    case .changed(let record): record.invalidPart
    case .progress(let task, let counts): TransferMessage.taskPart(task) ?? (counts.areValid ? nil : "the counts")
    case .question(_, let task, let question): TransferMessage.taskPart(task) ?? question.invalidPart
    case .lost: "the end of a connection"
    }
  }
}

extension TransferQuestion {
  /// Maximum number of members of a list of certificates or issuers.
  private static let membersMax = 1000
  /// Maximum size of a list of certificates or issuers in bytes. OpenSSL accepts 100 KiB of a server.
  static let membersBytesMax = 256 << 10
  static let certificatesPart = "the list of certificates"

  var invalidPart: String? {
    switch self {
    case .beginDelayed: return nil
    case .challenge(let challenge):
      return challenge.previousFailures < 0 ? "the number of failures" : challenge.proposed?.invalidPart
    case .trust(let trust):
      if trust.depth < 0 { return "the depth" }
      return !trust.sent.isEmpty && Self.isList(trust.sent) && Self.isList(trust.verified)
        ? nil : Self.certificatesPart
    case .clientCertificate(let request): return Self.isList(request.issuers) ? nil : "the list of issuers"
    }
  }

  /// Whether the question can be sent: its parts are no larger than those of any chain or list of issuers in use.
  package var isPossible: Bool { invalidPart == nil }

  static func isList(_ members: [[UInt8]]) -> Bool {
    members.count <= membersMax && members.reduce(0) { $0 + $1.count } <= membersBytesMax
  }
}
