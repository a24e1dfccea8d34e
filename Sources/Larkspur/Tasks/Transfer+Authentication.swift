import Foundation
import LarkspurHTTP
import LarkspurTransport

/// Challenges by 401 and 407.
extension Transfer {
  /// What the request to come carries of credentials, and whom it may hear from.
  func prepareAuthentication(
    of request: URLRequest, _ target: LoadTarget, _ proxy: Proxy?, _ extras: inout RequestComposer.Extras
  ) {
    if let authentication {
      extras.authorization = authentication.origin.value
      extras.proxyAuthorization = authentication.proxy.value ?? extras.proxyAuthorization
    }
    defer { if extras.authorization != nil { extras.speaker = authentication?.origin.talk?.speaker } }
    guard !core.memory.isBlank, let url = request.url else { return }
    let known = authentication ?? TaskAuthentication()
    // What the program has set itself is its own affair, until the server refuses it.
    if known.origin.isOpen, request.value(forHTTPHeaderField: "Authorization") == nil,
      var talk = conversation(for: .origin, request, target, url, nil)
    {
      extras.authorization = talk.preemptiveValue()
      known.origin.talk = talk
      authentication = known
    }
    if let proxy, known.proxy.isOpen, var talk = conversation(for: .proxy, request, target, url, proxy) {
      extras.proxyAuthorization = talk.preemptiveValue() ?? extras.proxyAuthorization
      known.proxy.talk = talk
      authentication = known
    }
  }

  private func conversation(
    for role: AuthenticationTarget.Role, _ request: URLRequest, _ target: LoadTarget, _ url: URL, _ proxy: Proxy?
  ) -> AuthenticationConversation? {
    let authenticated = AuthenticatedRequest(
      method: request.own.method, target: role == .proxy ? "http://" + target.authority + target.path : target.path,
      to: role, bodyHash: bodyHash(of: request))
    guard let whom = role == .origin ? AuthenticationTarget(origin: url) : proxy.map(AuthenticationTarget.init(proxy:))
    else { return nil }
    return AuthenticationConversation(
      with: whom, about: authenticated, url: url, memory: core.memory,
      storage: core.credentialStorage, task: task)
  }

  private func bodyHash(of request: URLRequest) -> AuthenticatedRequest.BodyHash? {
    switch source {
    case .request:
      switch request.own.body {
      case .none: nil
      case .data(let data): BodyHashing.of(data)
      case .stream: BodyHashing.impossible
      }
    case .data(let data): BodyHashing.of(data)
    case .file(let url): BodyHashing.ofFile(at: url.path)
    case .delegateStream: BodyHashing.impossible
    }
  }

  private var canHashBody: Bool {
    switch source {
    case .request: if case .stream = machine.request.own.body { false } else { true }
    case .data, .file: true
    case .delegateStream: false
    }
  }

  /// Finds credentials for what a response demands.
  func answerChallenge(of response: HTTPURLResponse) async throws(URLError) -> TaskMachine.Step {
    guard let load else { throw Self.inconsistency }
    let (request, target, proxy) = (load.request, load.target, load.forwarder)
    let isProxy = response.statusCode == 407
    // A 407 that comes through a tunnel is no proxy's: an origin may not ask for the proxy's credentials.
    guard !isProxy || proxy != nil, let url = request.url else { return machine.credentialRefused() }
    let role: AuthenticationTarget.Role = isProxy ? .proxy : .origin
    let authentication = authentication ?? TaskAuthentication()
    self.authentication = authentication
    guard var talk = authentication[role].talk ?? conversation(for: role, request, target, url, proxy) else {
      return machine.credentialRefused()
    }
    let fields = response.fields.values(of: isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
    var step = talk.challenged(fields, canHashBody: canHashBody)
    while case .ask(let question) = step {
      step = talk.replied(try await askDelegate(question.challenge(response: response)))
    }
    authentication[role].talk = talk
    switch step {
    case .send(let value):
      authentication[role].value = value
      return machine.credentialGiven()
    case .cancel: throw URLError.make(.cancelled, "cancelled")
    case .ask, .deliver, .nothing: return machine.credentialRefused()
    }
  }

  private func askDelegate(
    _ challenge: URLAuthenticationChallenge
  ) async throws(URLError) -> AuthenticationConversation.Reply {
    let task = task
    return try await ask(otherwise: .performDefaultHandling) { session, delegate, answer in
      challenge.delegateWord.isGiven(by: delegate) {
        delegate.urlSession(session, task: task, didReceive: challenge) { answer(.init($0, $1)) }
        return true
      }
    }
  }
}

extension AuthenticationConversation.Reply {
  /// What a delegate says to a challenge.
  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    self =
      switch disposition {
      case .useCredential: .useCredential(credential)
      case .performDefaultHandling: .performDefaultHandling
      case .cancelAuthenticationChallenge: .cancel
      case .rejectProtectionSpace: .rejectProtectionSpace
      }
  }
}
