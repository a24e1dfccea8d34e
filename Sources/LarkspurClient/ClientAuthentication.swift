import LarkspurEngine
import LarkspurHTTP

/// A load's challenges by 401, and the credentials that its requests carry: the owner of an `AuthenticationMachine` for one
/// origin. It belongs to the loop.
struct ClientAuthentication {
  enum Step {
    /// Ask the program for a credential.
    case ask(HTTPClient.Challenge)
    /// Send the request again.
    case send
    /// The response with the challenge is the result.
    case deliver
  }

  private var machine = AuthenticationMachine()
  private let origin: AuthenticationTarget
  private let request: AuthenticatedRequest
  private let canHashBody: Bool
  /// The value of `Authorization` that the request carries.
  private(set) var value: String?

  init(_ request: HTTPClient.Request, to target: LoadTarget) {
    let scheme = target.isSecure ? "https" : "http"
    origin = AuthenticationTarget(.origin, scheme: scheme, host: target.host, port: Int(target.port))
    let hash: AuthenticatedRequest.BodyHash?
    (hash, canHashBody) =
      switch request.body.content {
      case .none: (nil, true)
      case .bytes(let bytes): (BodyHashing.of(bytes), true)
      case .file(let path): (BodyHashing.ofFile(at: path), true)
      case .produced: (BodyHashing.impossible, false)
      }
    self.request = AuthenticatedRequest(method: request.method, target: target.path, to: .origin, bodyHash: hash)
  }

  /// Finds the answer that the first send carries before any challenge.
  mutating func prepare(_ ledger: inout AuthenticationLedger) {
    guard let known = ledger.preemptive(for: request, to: origin, clientNonce: clientNonce()) else { return }
    machine.sentPreemptively(known.answer)
    value = known.value
  }

  /// Handles a 401.
  ///
  /// - Parameter fields: The values of `WWW-Authenticate`.
  mutating func challenged(_ fields: [String], _ ledger: inout AuthenticationLedger) -> Step {
    var actions: AuthenticationMachine.Actions = []
    machine.challenged(fields, canHashBody: canHashBody, into: &actions)
    return perform(actions, &ledger)
  }

  /// Takes the program's answer to a question. A credential that was refused is not sent again, so there is one question for
  /// each request.
  mutating func replied(_ credential: PasswordCredential?, _ ledger: inout AuthenticationLedger) -> Step {
    var actions: AuthenticationMachine.Actions = []
    if let credential {
      machine.credentialGiven(credential, into: &actions)
    } else {
      machine.credentialDeclined(into: &actions)
    }
    return perform(actions, &ledger)
  }

  /// Handles any other response: the server accepts the credential.
  ///
  /// - Parameter info: The values of `Authentication-Info`.
  mutating func accepted(info: [String], _ ledger: inout AuthenticationLedger) {
    var actions: AuthenticationMachine.Actions = []
    machine.accepted(into: &actions)
    for case .remember(let answer) in actions { ledger.remember(answer, for: request, to: origin, info: info) }
  }

  private mutating func perform(_ actions: AuthenticationMachine.Actions, _ ledger: inout AuthenticationLedger) -> Step
  {
    var step = Step.deliver
    for action in actions {
      switch action {
      case .ask(let question):
        guard question.failures == 0 else { return replied(nil, &ledger) }
        let space = question.offer.space
        step = .ask(
          HTTPClient.Challenge(
            host: origin.host, port: origin.port, isSecure: origin.scheme == "https", realm: space.realm,
            isDigest: space.method == .digest))
      case .send(let answer):
        value = ledger.authorization(answer, for: request, to: origin, clientNonce: clientNonce())
        guard value != nil else {
          var ends: AuthenticationMachine.Actions = []
          machine.answerFailed(into: &ends)
          return .deliver
        }
        step = .send
      case .forget(let answer): ledger.forget(answer, of: origin)
      case .remember, .deliver, .cancel: break
      }
    }
    return step
  }
}

extension HTTPClient {
  /// A server's demand for a user and a password, by Basic (RFC 7617) or Digest (RFC 7616).
  public struct Challenge: Hashable, Sendable {
    /// The host that demands them, in lower case.
    public let host: String
    /// The host's port.
    public let port: Int
    /// Whether the request is sent over TLS. Without TLS, Basic shows the password to all on the way.
    public let isSecure: Bool
    /// The name that the server gives to the part of it that needs the password.
    public let realm: String?
    /// Whether the server gets a digest in place of the password.
    public let isDigest: Bool
  }
}
