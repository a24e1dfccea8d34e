import Foundation
import LarkspurHTTP
import LarkspurTransport

/// A load's challenges by 401 and 407, and the credentials that its requests carry. Created with the first credential,
/// and anew for another origin. It belongs to the loop.
final class TaskAuthentication {
  /// The authentication at the origin or at the proxy.
  private struct Side {
    var flow: AuthenticationFlow?
    /// The value of the authorization field that the request carries.
    var value: String?

    /// Whether there has been no challenge and no answer.
    var isOpen: Bool { flow == nil && value == nil }
  }

  private unowned let transfer: Transfer
  /// The present origin.
  private var origin = Side()
  private var proxy = Side()

  init(of transfer: Transfer) { self.transfer = transfer }

  private subscript(role: AuthenticationTarget.Role) -> Side {
    get {
      switch role {
      case .origin: origin
      case .proxy: proxy
      }
    }
    set {
      switch role {
      case .origin: origin = newValue
      case .proxy: proxy = newValue
      }
    }
  }

  // MARK: - Before the request

  /// Adds the credentials that a request carries.
  ///
  /// - Returns: Whether the load has to keep this object: a request carries an answer.
  func prepare(_ load: NetworkLoad) -> Bool {
    load.additions.authorization = origin.value
    load.additions.proxyAuthorization = proxy.value ?? load.additions.proxyAuthorization
    defer {
      if load.additions.authorization != nil {
        load.additions.authorizationIdentity = origin.flow?.authorizationIdentity
      }
    }
    guard !transfer.core.memory.isBlank else { return !origin.isOpen || !proxy.isOpen }
    // A field that the program has set itself counts until the server refuses it.
    if origin.isOpen, load.request.value(forHTTPHeaderField: "Authorization") == nil,
      var flow = authenticationFlow(for: .origin, load)
    {
      load.additions.authorization = flow.preemptiveValue()
      origin.flow = flow
    }
    if load.forwarder != nil, proxy.isOpen, var flow = authenticationFlow(for: .proxy, load) {
      load.additions.proxyAuthorization = flow.preemptiveValue() ?? load.additions.proxyAuthorization
      proxy.flow = flow
    }
    return !origin.isOpen || !proxy.isOpen
  }

  private func authenticationFlow(for role: AuthenticationTarget.Role, _ load: NetworkLoad) -> AuthenticationFlow? {
    // An upload resource of another origin gets no credentials, whatever it asks for.
    guard role == .proxy || transfer.resumable?.isElsewhere != true else { return nil }
    let (request, target, proxy) = (load.request, load.target, load.forwarder)
    guard let url = request.url,
      let peer = role == .origin ? AuthenticationTarget(origin: url) : proxy.map(AuthenticationTarget.init(proxy:))
    else { return nil }
    let path = target.path(of: request)
    let authenticated = AuthenticatedRequest(
      method: request.own.method, target: role == .proxy ? "http://" + target.authority + path : path,
      to: role, bodyHash: bodyHash(of: request))
    return AuthenticationFlow(
      with: peer, about: authenticated, url: url, memory: transfer.core.memory,
      storage: transfer.core.credentialStorage, task: transfer.task)
  }

  private func bodyHash(of request: URLRequest) -> AuthenticatedRequest.BodyHash? {
    // A part of a file, or nothing, is sent in place of the body.
    if transfer.resumable?.sendsWhole == false { return BodyHashing.impossible }
    return switch transfer.source {
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
    if transfer.resumable?.sendsWhole == false { return false }
    return switch transfer.source {
    case .request: if case .stream = transfer.machine.request.own.body { false } else { true }
    case .data, .file: true
    case .delegateStream: false
    }
  }

  // MARK: - After the response's head

  /// Finds credentials for what a response demands.
  ///
  /// - Returns: Whether the request is to be sent again, with credentials.
  func answerChallenge(of response: HTTPURLResponse, to load: NetworkLoad) async throws(URLError) -> Bool {
    let isProxy = response.statusCode == 407
    // A 407 that comes through a tunnel is not the proxy's: an origin may not ask for the proxy's credentials.
    guard !isProxy || load.forwarder != nil else { return false }
    let role: AuthenticationTarget.Role = isProxy ? .proxy : .origin
    guard var flow = self[role].flow ?? authenticationFlow(for: role, load) else { return false }
    let fields = response.fields.values(of: isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
    var step = flow.challenged(fields, canHashBody: canHashBody)
    while case .ask(let question) = step {
      step = flow.replied(try await ask(question.challenge(response: response)))
    }
    self[role].flow = flow
    switch step {
    case .send(let value):
      self[role].value = value
      return true
    case .cancel: throw URLError.make(.cancelled, "cancelled")
    case .ask, .deliver, .nothing: return false
    }
  }

  private func ask(
    _ challenge: URLAuthenticationChallenge
  ) async throws(URLError) -> AuthenticationFlow.Reply {
    let task = transfer.task
    return try await transfer.askDelegate(otherwise: .performDefaultHandling) { session, delegate, answer in
      challenge.methodProbe.isImplemented(by: delegate) {
        delegate.urlSession(session, task: task, didReceive: challenge) { answer(.init($0, $1)) }
        return true
      }
    }
  }

  /// The server or the proxy has let the request pass.
  ///
  /// - Returns: The calls that the credential storage needs for that.
  func accepted(by response: HTTPURLResponse) -> [@Sendable () -> Void] {
    let ofOrigin =
      response.statusCode == 401
      ? nil : origin.flow?.accepted(info: response.fields.values(of: "Authentication-Info"))
    let ofProxy =
      response.statusCode == 407
      ? nil : proxy.flow?.accepted(info: response.fields.values(of: "Proxy-Authentication-Info"))
    return [ofOrigin, ofProxy].compactMap(\.self)
  }
}

extension AuthenticationFlow.Reply {
  /// A delegate's answer to a challenge.
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
