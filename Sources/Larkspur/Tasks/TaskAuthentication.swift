import Foundation
import LarkspurEngine
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

  private let core: SessionCore
  private let source: BodySource
  /// The present origin.
  private var origin = Side()
  private var proxy = Side()

  /// - Parameter source: The source of the requests' bodies.
  init(_ core: SessionCore, _ source: BodySource) {
    self.core = core
    self.source = source
  }

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
  /// - Parameters:
  ///   - upload: The resumable upload that the request belongs to.
  ///   - task: The load's task, which is made only if it is needed.
  /// - Returns: Whether the load has to keep this object: a request carries an answer.
  func prepare(_ load: NetworkLoad, _ upload: ResumableUpload?, of task: @autoclosure () -> URLSessionTask) -> Bool {
    load.additions.authorization = origin.value
    load.additions.proxyAuthorization = proxy.value ?? load.additions.proxyAuthorization
    defer {
      if load.additions.authorization != nil {
        load.additions.authorizationIdentity = origin.flow?.authorizationIdentity
      }
    }
    guard !core.memory.isBlank else { return !origin.isOpen || !proxy.isOpen }
    // A field that the program has set itself counts until the server refuses it.
    if origin.isOpen, load.request.value(forHTTPHeaderField: "Authorization") == nil,
      var flow = authenticationFlow(for: .origin, load, upload, of: task())
    {
      load.additions.authorization = flow.preemptiveValue()
      origin.flow = flow
    }
    if load.forwarder != nil, proxy.isOpen, var flow = authenticationFlow(for: .proxy, load, upload, of: task()) {
      load.additions.proxyAuthorization = flow.preemptiveValue() ?? load.additions.proxyAuthorization
      proxy.flow = flow
    }
    return !origin.isOpen || !proxy.isOpen
  }

  private func authenticationFlow(
    for role: AuthenticationTarget.Role, _ load: NetworkLoad, _ upload: ResumableUpload?,
    of task: @autoclosure () -> URLSessionTask
  ) -> AuthenticationFlow? {
    // An upload resource of another origin gets no credentials, whatever it asks for.
    guard role == .proxy || upload?.isElsewhere != true else { return nil }
    let (request, target, proxy) = (load.request, load.target, load.forwarder)
    guard let url = request.url,
      let peer = role == .origin ? AuthenticationTarget(origin: url) : proxy.map(AuthenticationTarget.init(proxy:))
    else { return nil }
    let path = target.path(of: request)
    let authenticated = AuthenticatedRequest(
      method: request.own.method, target: role == .proxy ? "http://" + target.authority + path : path,
      to: role, bodyHash: bodyHash(of: request, upload))
    return AuthenticationFlow(
      with: peer, about: authenticated, url: url, memory: core.memory,
      storage: core.credentialStorage, task: task())
  }

  private func bodyHash(of request: URLRequest, _ upload: ResumableUpload?) -> AuthenticatedRequest.BodyHash? {
    // A part of a file, or nothing, is sent in place of the body.
    if upload?.sendsWhole == false || source.isCompressed(in: request, core) { return BodyHashing.impossible }
    return switch source {
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

  private func canHashBody(of request: URLRequest, _ upload: ResumableUpload?) -> Bool {
    if upload?.sendsWhole == false || source.isCompressed(in: request, core) { return false }
    return switch source {
    case .request: if case .stream = request.own.body { false } else { true }
    case .data, .file: true
    case .delegateStream: false
    }
  }

  // MARK: - After the response's head

  /// Finds credentials for what a response demands.
  ///
  /// - Returns: The next step, or `nil` if the response demands nothing that the load can give. A question is answered
  ///   by `replied`.
  func challenged(
    by response: HTTPURLResponse, to load: NetworkLoad, _ upload: ResumableUpload?, of task: URLSessionTask
  ) -> AuthenticationFlow.Step? {
    let role = Self.role(of: response)
    // A 407 that comes through a tunnel is not the proxy's: an origin may not ask for the proxy's credentials.
    guard role == .origin || load.forwarder != nil,
      var flow = self[role].flow ?? authenticationFlow(for: role, load, upload, of: task)
    else { return nil }
    let fields = response.fields.values(of: role == .proxy ? "Proxy-Authenticate" : "WWW-Authenticate")
    let step = flow.challenged(fields, canHashBody: canHashBody(of: load.request, upload))
    return keep(flow, step, role)
  }

  /// Takes the delegate's reply to the question about a response.
  func replied(_ reply: AuthenticationFlow.Reply, to response: HTTPURLResponse) -> AuthenticationFlow.Step? {
    let role = Self.role(of: response)
    guard var flow = self[role].flow else { return nil }
    let step = flow.replied(reply)
    return keep(flow, step, role)
  }

  private static func role(of response: HTTPURLResponse) -> AuthenticationTarget.Role {
    response.statusCode == 407 ? .proxy : .origin
  }

  private func keep(
    _ flow: AuthenticationFlow, _ step: AuthenticationFlow.Step, _ role: AuthenticationTarget.Role
  ) -> AuthenticationFlow.Step {
    self[role].flow = flow
    if case .send(let value) = step { self[role].value = value }
    return step
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
