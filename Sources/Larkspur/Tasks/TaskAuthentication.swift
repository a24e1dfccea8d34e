import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// A load's challenges by 401 and 407, and the credentials that its requests carry. Created with the first credential,
/// and anew for another origin. It belongs to the loop.
final class TaskAuthentication {
  private let core: SessionCore
  private let source: BodySource
  private var sides = LoadAuthentication<SessionCredentials>()

  /// - Parameter source: The source of the requests' bodies.
  init(_ core: SessionCore, _ source: BodySource) {
    self.core = core
    self.source = source
  }

  // MARK: - Before the request

  /// Adds the credentials that a request carries.
  ///
  /// - Parameters:
  ///   - upload: The resumable upload that the request belongs to.
  ///   - task: The load's task, which is made only if it is needed.
  /// - Returns: Whether the load has to keep this object: a request carries an answer.
  func prepare(_ load: NetworkLoad, _ upload: ResumableUpload?, of task: @autoclosure () -> URLSessionTask) -> Bool {
    let isBlank = core.memory.isBlank
    let hasOwn = !isBlank && load.request.value(forHTTPHeaderField: "Authorization") != nil
    sides.prepare(&load.additions, isBlank: isBlank, hasOwn: hasOwn, isForwarded: load.forwarder != nil) {
      authenticationFlow(for: $0, load, upload, of: task())
    }
    return !sides.isOpen
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
    let source = SessionCredentials(
      url: role == .origin ? url : nil, memory: core.memory, storage: core.credentialStorage, task: task())
    return AuthenticationFlow(with: peer, about: authenticated, from: source)
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

  /// Finds credentials for the challenges of a response.
  ///
  /// - Returns: The next step, or `nil` if the response demands nothing that the load can give. A question is answered
  ///   by `replied`.
  func challenged(
    by response: HTTPURLResponse, to load: NetworkLoad, _ upload: ResumableUpload?, of task: URLSessionTask
  ) -> AuthenticationFlow.Step? {
    sides.challenged(
      status: response.statusCode, values: { response.fields.values(of: $0) }, isForwarded: load.forwarder != nil,
      canHashBody: canHashBody(of: load.request, upload)
    ) { authenticationFlow(for: $0, load, upload, of: task) }
  }

  /// Takes the delegate's reply to the question about a response.
  func replied(_ reply: SessionCredentials.Reply, to response: HTTPURLResponse) -> AuthenticationFlow.Step? {
    sides.replied(reply, status: response.statusCode)
  }

  /// The server or the proxy has let the request pass.
  ///
  /// - Returns: The calls that the credential storage needs for that.
  func accepted(by response: HTTPURLResponse) -> [@Sendable () -> Void] {
    sides.accepted(status: response.statusCode) { response.fields.values(of: $0) }
  }
}

extension SessionCredentials.Reply {
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
