import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// From a request to its head on a connection.
extension Load {
  // MARK: - Begin

  func start() throws(URLError) -> Stop? {
    note(machine.request, isFirst: true)
    adoptTaskState()
    perCallDelegate = PerCallDelegate.of(self)
    startClock()
    enter(.requested)
    // Before the check for a cancellation: a download that was to continue, and is cancelled now, can still continue
    // later.
    try currentTask?.prepare(self)
    return isHalted ? .wait(.resumption) : nil
  }

  // MARK: - Source

  /// Decides whether a protocol, this machine or a server has the content.
  func findSource() throws(URLError) -> Stop? {
    if let live, !live.beginsWithRequest { return stop(of: live) }
    if let segments = segmentsToLoad() { return .need(.segments(segments)) }
    if mayBeAdapted { return .need(.adaptation) }
    if live != nil {
      // A program's protocol and a file give one response to a request, so neither can serve a WebSocket or a stream.
      machine.replaceWebSocketURL()
      return try findTarget().map { .need($0) }
    }
    if let resumable {
      if let need = try resumable.next(after: machine.request) { return .need(need) }
      // Credentials are for one origin, and some for one method and URL.
      if resumable.isNewAtResource { authentication = nil }
    }
    guard machine.request.url != nil else { throw URLError.make(.unsupportedURL, "unsupported URL") }
    // A program's protocol answers the program's requests, and not those of an upload resource.
    let mayBeOfProtocol = core.mayHaveProtocols && resumable?.isAtResource != true
    guard mayBeOfProtocol else { return try findTarget().map { .need($0) } }
    // Here, and not by the worker, so that turns have the order in which the tasks were resumed.
    protocolTurn = core.protocolTurns.take()
    return .need(.protocolLoad)
  }

  private func findTarget() throws(URLError) -> Need? {
    let request = resumable?.resourceRequest ?? machine.request
    guard let url = request.url else { throw URLError.make(.unsupportedURL, "unsupported URL") }
    do throws(LoadTarget.Invalid) {
      let target = try LoadTarget.of(url, after: engine.latestTarget)
      if engine.latestTarget !== target { engine.latestTarget = target }
      networkLoad = NetworkLoad(request, to: target)
      enter(.preparing)
      return nil
    } catch {
      if let response = machine.redirection { keepRedirection(response) }
      if case .schemeUnsupported = error, machine.mayBeLocal, Self.isLocal(url) { return .localLoad(url) }
      throw unloadable(url, error)
    }
  }

  func loadByProtocol() async throws(URLError) {
    let turn = protocolTurn
    defer { core.protocolTurns.end(turn) }
    if let found = try await protocolLoad(for: machine.request) {
      if try await loadByProtocol(found, turn) { loadAgain() } else { enter(.complete) }
      return
    }
    core.protocolTurns.end(turn)
    if let need = try findTarget() {
      try await provide(need)
    }
  }

  private func unloadable(_ url: URL, _ reason: LoadTarget.Invalid) -> URLError {
    let (code, message): (URLError.Code, String) =
      switch reason {
      case .schemeUnsupported: (.unsupportedURL, "unsupported URL")
      case .hostMissing: (.badURL, "HTTP URL must have a host")
      case .hostInvalid: (.badURL, "the URL's host is invalid")
      case .portInvalid: (.badURL, "the URL's port is invalid")
      case .portZero: (.cannotConnectToHost, "no server has port 0")
      }
    guard let redirecting = machine.redirection?.url else { return .make(code, message, url: url) }
    // The failing URL is the one that redirects: a server's text may hold a password.
    return .make(code, "cannot follow to \(url.absoluteString.withoutUserinfo): \(message)", url: redirecting)
  }

  /// Makes the redirecting response the task's, because the redirection cannot be followed: no other response comes.
  private func keepRedirection(_ response: HTTPURLResponse) {
    show(response, length: content.expectedCount)
  }

  // MARK: - Prepare

  /// Prepares a request: its route, its credentials and cookies, the cache's plan, its body, its head. Each part is
  /// prepared once; when the caller has provided what a part needs, the next call continues there.
  func prepare() throws(URLError) -> Stop? {
    guard let load = networkLoad else { throw Self.inconsistency }
    let request = load.request
    guard let route = load.route ?? cachedRoute(for: load) else {
      return .need(.route(decider(for: load), routeNeeds(of: request)))
    }
    if load.route == nil { take(route, for: load) }
    if !load.hasFields {
      try fill(load, route)
      load.hasFields = true
    }
    if !load.hasCookies, let jar = core.cookieStorage, jar.isSubclass { return .need(.cookies(jar)) }
    if !load.isPlanned, let stop = try planCaching(of: load) { return stop }
    switch load.plan {
    case nil: break
    case .load(let exchange)?, .validate(let exchange)?:
      if case .validate? = load.plan { note(.cache(.validating)) }
      load.additions.conditions = exchange.addedFields
      load.caching = exchange
    case .serve(let answer)?:
      note(.cache(.served))
      use(answer, for: load)
      return nil
    case .fail(let code)?:
      throw URLError.make(code, "the response is not in the cache, and may not be loaded", url: request.url)
    }
    if isHalted { return .wait(.resumption) }
    if load.body == nil { load.body = try knownBody(of: load) }
    guard let body = load.body else { return .need(.bodyStream) }
    if body.isCompressed { load.additions.replacements.append(BodyCompression.field) }
    do throws(RequestTrailers.Invalid) {
      try request.own.trailers?.check(isStreamed: body.hasTrailers)
    } catch {
      throw URLError.make(.badURL, "\(error)", url: request.url)
    }
    if body.length == .chunked, route.endpoint.answersByHTTP10 {
      throw URLError.make(
        .requestBodyStreamExhausted,
        "the body's length is not known, and the server's last answer was of HTTP/1.0, which has no chunks",
        url: request.url)
    }
    if body.length != .none { upload.expectToSend(body, of: currentTask) }
    var poolRequest = try core.poolRequest(
      for: request, to: load.target, by: route, load.additions, body.content, body.length, priority: priority)
    if isObserved(body) { observe(&poolRequest, url: request.url) }
    if let end = interception?.deadline(from: engine.loop.now) { poolRequest.deadline = end }
    if let timeMax = resumable?.timeMax {
      // The time of this request has a separate limit, and the failure before it is the load's.
      stopIdleTime()
      poolRequest.deadline = engine.loop.now.advanced(by: timeMax)
    }
    load.poolRequest = poolRequest
    note(request)
    enter(.prepared)
    return nil
  }

  private func decider(for load: NetworkLoad) -> (any URLSessionTaskDelegate)? {
    currentTask.flatMap { engine.decider(of: $0, for: load.target, core) }
  }

  private func cachedRoute(for load: NetworkLoad) -> SessionEngine.ResolvedRoute? {
    engine.cachedRoute(to: load.target, decider: decider(for: load), routeNeeds(of: load.request))
  }

  private func routeNeeds(of request: URLRequest) -> SessionEngine.RouteNeeds {
    SessionEngine.RouteNeeds(trafficClass: core.trafficClass(of: request), tunnels: live != nil)
  }

  func resolveRoute(
    _ decider: (any URLSessionTaskDelegate)?, _ needs: SessionEngine.RouteNeeds
  ) async throws(URLError) {
    guard let load = networkLoad else { throw Self.inconsistency }
    take(
      try await engine.resolveRoute(to: load.target, of: core, decider: decider, needs), for: load)
  }

  private func take(_ route: SessionEngine.ResolvedRoute, for load: NetworkLoad) {
    load.route = route
    if let challenges = route.challenges { attach(challenges) }
  }

  /// Adds the task to those whose delegates a router may call.
  func attach(_ challenges: ChallengeRouter) {
    if let before = self.challenges, before !== challenges { before.detach(task) }
    self.challenges = challenges
    challenges.attach(task)
  }

  private func fill(_ load: NetworkLoad, _ route: SessionEngine.ResolvedRoute) throws(URLError) {
    load.additions = core.additions(
      of: load.request, by: route, to: load.target, isRedirected: machine.redirectCount > 0)
    load.additions.hasLeftOrigin = machine.hasLeftOrigin
    if let trailers = load.request.own.trailers { load.additions.replacements.append(trailers.announcement) }
    if let download { load.additions.conditions = download.conditions(of: load.request) }
    try live?.addFields(to: load)
    if authentication != nil || !core.memory.isBlank {
      let authentication = authentication ?? TaskAuthentication(core, source)
      if authentication.prepare(load, resumable, of: task) { self.authentication = authentication }
    }
  }

  private func knownBody(of load: NetworkLoad) throws(URLError) -> UploadBody? {
    if let body = try resumable?.ownBody(of: load) {
      if body.length == .none { uploadIfAny?.expectNoBody() }
      return body
    }
    let request = load.request
    // Once there is an `upload`, it notes requests without a body as well: an earlier one may have read a stream.
    if uploadIfAny == nil, case .request = source, case .none = request.own.body { return UploadBody() }
    let whole = try upload.knownBody(
      of: request, isRedirected: machine.redirectCount > 0, isPinned: resumable != nil, engine.loop.kernel)
    guard let resumable else { return whole }
    if let body = try resumable.begin(whole, of: load) { return body }
    // The request does not send a regular file.
    self.resumable = nil
    return whole
  }

  /// Whether events of the request have an observer: the sending of its body, or interim responses.
  private func isObserved(_ body: UploadBody) -> Bool {
    guard let currentTask else { return !body.content.isLittle }
    if resumable != nil { return true }
    if hasDelegate, body.length != .none || wants(.informationalResponse) { return true }
    return !body.content.isLittle || currentTask.read { $0.progress != nil }
  }

  static var inconsistency: URLError { .make(.unknown, "a stage of the load has come out of its order") }

  // MARK: - Send

  /// A load that has no worker subscribes to its response, if nothing but a connection has to be waited for.
  func send() throws(URLError) -> Stop? {
    if hasWorker { return .need(.response) }
    if !slot.isSent {
      guard let load = networkLoad, let route = load.route, let request = load.poolRequest else {
        throw Self.inconsistency
      }
      guard slot.isInFlight || !core.settings.shouldUsePipelining && !load.request.httpShouldUsePipelining else {
        return .need(.response)
      }
      switch engine.pool.send(request, with: route.endpoint, in: slot, for: self) {
      case .sent: sent(request)
      case .queued: return .wait(.callback)
      case .needsTask: return .need(.response)
      }
    }
    do throws(TransportError) {
      guard let running = try slot.answer(for: self) else { return .wait(.callback) }
      answered(by: running)
      return nil
    } catch {
      // A worker waits for the response by `Pool.start`, which may send the request again.
      return .need(.response)
    }
  }

  /// The request has been sent. If it has an observer, that has been notified.
  private func sent(_ request: PoolRequest) {
    if request.observer == nil { allSent() }
  }

  private func answered(by running: consuming RunningExchange) {
    networkLoad?.route?.endpoint.answered(by: running.exchange)
    self.running = consume running
    enter(.answered)
  }

  /// Waits for a connection and for the head of the response.
  func awaitResponse() async throws(URLError) {
    guard let load = networkLoad, let route = load.route, let request = load.poolRequest else {
      throw Self.inconsistency
    }
    do throws(TransportError) {
      let running = try await engine.pool.start(request, with: route.endpoint, in: slot)
      progressed()
      sent(request)
      answered(by: running)
    } catch {
      collectMetrics(of: load)
      var hasWaited = false
      if core.waitsForNetwork, interruption == nil {
        hasWaited = try await hasWaitedForNetwork(after: error)
      }
      if let resumable, interruption == nil, try await continues(resumable, after: error) { return loadAgain() }
      if hasWaited {
        uploadIfAny?.streamIsUnread()
        return loadAgain()
      }
      if interruption == nil, let answer = standIn(for: load.caching) {
        note(.cache(.storedUsed))
        return use(answer, for: load)
      }
      throw URLError(error, url: load.request.url)
    }
  }

  /// Abandons the exchange of a load that has failed.
  func abandonExchange() {
    if let running = running.take() {
      slot.failedPeer = running.exchange.peer
      running.end()
      if let networkLoad { collectMetrics(of: networkLoad) }
    } else if slot.isInFlight {
      slot.giveUp()
    }
  }
}
