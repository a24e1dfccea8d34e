import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// One load of a client: the state of its stages, from the call to the end of its response's body.
///
/// The stages run in callbacks of the loop while the caller's task is suspended (`reachOwner`). What a stage needs and a
/// callback cannot bring is awaited by the caller's task, on the loop (`provide`).
///
/// Threads. `cancel` may be called from any thread. Everything else belongs to the loop while the caller's task is
/// suspended, and to that task in between: no stage runs while the caller's code does, so that the bytes which are there
/// are taken without a change of the thread.
final class ClientLoad: @unchecked Sendable {
  /// Why the stages have stopped.
  enum Stop {
    case need(Need)
    /// A callback, which has been subscribed, comes first.
    case callback
    /// The caller gets the response, or bytes of its body.
    case owner
  }

  /// What the caller's task provides before a stage can run.
  enum Need {
    /// The changes of the client's interceptors to the request.
    case adaptation
    /// The decision of the client's interceptors about the response.
    case decision
    /// The decision of the client's interceptors about an attempt that has failed.
    case decisionAfter(HTTPClientError)
    case route
    /// A connection, and the head of the response.
    case response
    /// The program's answer to a challenge.
    case credential(ClientCredentials.Question)
    /// The rest of a response that is dropped.
    case drain
  }

  typealias Failure = HTTPClientError

  /// The client, which keeps its connections as long as a load runs.
  private let client: HTTPClient
  let engine: ClientEngine
  /// The current request: after a redirection, the next one.
  var request: HTTPClient.Request
  var stage = LoadStage.created
  /// The WebSocket that the load opens, or `nil` for a request.
  let opening: ClientWebSocket?
  let slot: RequestSlot
  private(set) var machine: LoadMachine
  private var startedAt = Deadline.never
  private(set) var deadline = Deadline.never
  /// `nil` if the client has no interceptors.
  let interception: Interception<any HTTPClient.Interceptor, HTTPClient.Request>?
  /// The number of bytes of the current attempt's body that were sent. Counted for interceptors only.
  private(set) var bodyBytesSent = 0
  /// Whether the interceptors have decided that the response is delivered.
  var isDecided = false
  /// The error of an interceptor, which becomes the load's error as it is.
  var ownFailure: (any Error)?

  // The current request's parts, in the order of their preparation.
  private var target: LoadTarget?
  private var route: ClientRoute?
  private var poolRequest: PoolRequest?
  private(set) var running: RunningExchange?
  /// The challenges of the current request's origin and proxy.
  ///
  /// Performance: an object of its own, made for the first challenge or credential.
  private var authentication: ClientAuthentication?
  private var isDrained = false
  private var step = LoadMachine.Step.load
  /// The request that a redirection leads to.
  private var redirection: (request: HTTPClient.Request, isElsewhere: Bool)?

  // The response.
  private(set) var head = ResponseHead()
  /// Whether `head` is the response to the current request.
  private(set) var hasHead = false
  /// The number of bytes of the response's body, decoded.
  private var contentBytes = 0
  private var headBytes: [UInt8] = []
  private var fieldsRead: FieldList?
  private(set) var trailers: FieldList = []
  private var decoder: ContentDecoding?
  /// The bytes of the body that the caller has not taken.
  private var buffer: [UInt8] = []
  /// The error that follows the buffered bytes.
  private var bodyFailure: HTTPClientError?
  /// The error of a load without a response.
  private var failure: HTTPClientError?
  /// Whether the caller waits for bytes of the body, and not for the response.
  private var wantsBytes = false
  /// What the caller's task has to provide.
  private var need: Need?
  /// The caller's task while it is suspended.
  private var continuation: TaskContinuation?
  /// Whether the caller's closure has ended.
  private var isOver = false

  /// The number of buffered bytes from which no more are taken.
  private static let bufferBytesMax = 64 * 1024

  init(
    _ request: HTTPClient.Request, of client: HTTPClient, _ engine: ClientEngine, opening: ClientWebSocket? = nil
  ) {
    self.request = request
    self.opening = opening
    self.client = client
    self.engine = engine
    machine = LoadMachine(redirectsMax: engine.options.redirectsMax)
    slot = RequestSlot(of: engine.pool, collectsMetrics: request.recorder != nil)
    let interceptors = engine.options.interceptors
    interception =
      interceptors.isEmpty ? nil : Interception(interceptors, timeouts: interceptors.compactMap(\.attemptTimeout))
  }

  func cancel() { slot.cancel() }

  /// The fields of the response's head. Performance: made when they are first read.
  var fields: FieldList {
    if let fieldsRead { return fieldsRead }
    let fields = FieldList(head.fields, in: headBytes)
    fieldsRead = fields
    return fields
  }

  // MARK: - The caller's side

  /// Runs the load up to the head of the response that is delivered, and takes the part of the body that is there.
  func run() async throws {
    // A cancellation reaches the slot by the loop's inbox, which this call may have overtaken.
    guard !Task.isCancelled else { throw HTTPClientError(.cancelled, "cancelled", url: request.url) }
    await reachOwner()
    if let failure { throw ownFailure ?? failure }
  }

  /// Returns the next bytes of the body, or `nil` at its end.
  func next() async throws(HTTPClientError) -> [UInt8]? {
    guard !isOver else {
      throw HTTPClientError(.bodyOver, "the body was read after the end of its closure", url: request.url)
    }
    if buffer.isEmpty, bodyFailure == nil, stage != .complete {
      wantsBytes = true
      await reachOwner()
    }
    guard !buffer.isEmpty else {
      if let bodyFailure { throw bodyFailure }
      return nil
    }
    var bytes: [UInt8] = []
    swap(&bytes, &buffer)
    return bytes
  }

  /// Runs the stages until the caller gets something, or the load is complete.
  private func reachOwner() async {
    while true {
      let isOnLoop = engine.loop.isCurrent
      if !isOnLoop || !performStages() {
        await TaskContinuation.suspend {
          continuation = $0
          if !isOnLoop { engine.loop.submit(self, inline: true) }
        }
      }
      guard need != nil else { return }
      await engine.loop.run { [self] in
        while let need = need.take() {
          do throws(HTTPClientError) {
            try await provide(need)
          } catch {
            attemptFailed(error)
          }
        }
      }
      if stage == .complete { return }
    }
  }

  /// Ends the load after the caller's closure. The connection serves the next request if the body was read to its end,
  /// or little of it is left; otherwise it is closed.
  ///
  /// - Parameter mayDrain: Whether this may wait a moment for the rest of the body.
  func finish(mayDrain: Bool) async {
    isOver = true
    buffer = []
    guard stage != .complete else { return }
    await engine.loop.run { [self] in
      if mayDrain, let exchange = running?.exchange, (exchange.contentLength ?? 0) <= Exchange.drainBytesMax {
        _ = try? await exchange.drain(on: engine.loop)
      }
      endExchange()
      enter(.complete)
      note(.ended(error: nil))
    }
  }

  // MARK: - On the loop

  /// Runs the stages as far as they go.
  ///
  /// - Returns: `false` if a callback comes first, and then calls `perform`.
  private func performStages() -> Bool {
    do throws(HTTPClientError) {
      switch try advance() {
      case .callback?: return false
      case .need(let need)?: self.need = need
      case .owner?, nil: break
      }
    } catch {
      attemptFailed(error)
    }
    return true
  }

  var isInBody: Bool { stage == .delivering || stage == .delivered }

  /// Ends the exchange of an attempt, or the wait for one.
  func endAttempt() {
    if running == nil { slot.giveUp() }
    endExchange()
  }

  /// Loads a request anew, after an attempt that is over.
  func loadAgain(_ next: HTTPClient.Request) {
    request = next
    authentication = nil
    enter(.requested)
  }

  /// Ends the load with an error, unless interceptors decide about it first.
  private func attemptFailed(_ error: HTTPClientError) {
    if mayRepeat { need = .decisionAfter(error) } else { fail(error) }
  }

  /// Ends the load with an error. The reader of a body gets the bytes before it first.
  func fail(_ error: HTTPClientError) {
    let isOfBody = isInBody
    endAttempt()
    enter(.complete)
    let error = slot.isCancelled ? HTTPClientError(.cancelled, "cancelled", url: request.url) : error
    note(.ended(error: "\(error)"))
    if isOfBody { bodyFailure = error } else { failure = error }
  }

  private func provide(_ need: Need) async throws(HTTPClientError) {
    switch need {
    case .adaptation: try await adaptRequest()
    case .decision: try await askInterceptors()
    case .decisionAfter(let error): await repeatOrFail(error)
    case .route: try await makeRoute()
    case .response: try await awaitResponse()
    case .credential(let question): await askCredential(question)
    case .drain: await drain()
    }
  }

  /// Receives the rest of a response that is dropped. If the connection breaks, the next request gets another one.
  func drain() async {
    isDrained = true
    if let exchange = running?.exchange { _ = try? await exchange.drain(on: engine.loop) }
  }

  @inline(__always)
  func note(_ kind: @autoclosure () -> HTTPEvent.Kind) {
    if let observer = engine.observer {
      observer.observe(HTTPEvent(kind(), task: slot.task, at: engine.loop.kernel.now()))
    }
  }

  private func failure(_ error: TransportError) -> HTTPClientError { HTTPClientError(error, url: request.url) }

  private func endExchange() {
    decoder = nil
    running.take()?.end()
    record()
  }

  /// Records the attempts of the current request, which are over.
  private func record() {
    guard let recorder = request.recorder else { return }
    let tries = slot.takeMetrics()
    let isProxied = route?.endpoint.route.proxy != nil
    recorder.add(
      tries.indices.map { index in
        let isLast = hasHead && index == tries.count - 1
        return HTTPClient.Attempt(
          tries[index], of: request, status: isLast ? head.status : nil, isProxied: isProxied,
          contentBytes: isLast ? contentBytes : 0, since: startedAt)
      })
  }
}

extension ClientLoad: LoadStages {
  func start() throws(HTTPClientError) -> Stop? {
    if engine.observer != nil {
      engine.loadsSeen += 1
      slot.task = engine.loadsSeen
    }
    note(.started(method: request.method, url: request.url))
    startedAt = engine.loop.now
    if let total = engine.options.timeouts.total { deadline = startedAt.advanced(by: total) }
    enter(.requested)
    return nil
  }

  func findSource() throws(HTTPClientError) -> Stop? {
    if opening != nil, let url = WebSocketHandshake.httpURL(of: request.url) { request.url = url }
    if interception?.isAdapted == false { return .need(.adaptation) }
    do throws(LoadTarget.Invalid) {
      target = try LoadTarget.of(request.url, after: engine.latestTarget) { nil }
    } catch {
      throw HTTPClientError(error, url: request.url)
    }
    if engine.latestTarget !== target { engine.latestTarget = target }
    (route, poolRequest, isDrained, isDecided, hasHead, contentBytes) = (nil, nil, false, false, false, 0)
    enter(.preparing)
    return nil
  }

  func prepare() throws(HTTPClientError) -> Stop? {
    guard let target else { throw .inconsistency }
    guard let route = route ?? engine.knownRoute(to: target, tunnels: opening != nil) else { return .need(.route) }
    self.route = route
    // A server on the way may take the body of a GET for the next request.
    if request.method == "GET", !request.body.isNone {
      throw HTTPClientError(.invalidRequest, "a GET request must not have a body", url: request.url)
    }
    let body = try request.sentBody(engine.composer)
    if body.length == .chunked, route.endpoint.answersByHTTP10 {
      throw HTTPClientError(
        .bodyFailed,
        "the body's length is not known, and the server's last answer was of HTTP/1.0, which has no chunks",
        url: request.url)
    }
    var additions = RequestComposer.AdditionalFields()
    additions.hasLeftOrigin = machine.hasLeftOrigin
    if !body.fields.isEmpty { additions.replacements = body.fields }
    if let opening { additions.replacements = try opening.openingFields(of: request) }
    if engine.options.keepsCookies, machine.redirectCount > 0 || !request.fields.contains(named: "Cookie") {
      additions.cookie = engine.cookieField(for: target)
    }
    if route.isForwarded {
      additions.isForwarded = true
      additions.proxyAuthorization = route.endpoint.route.proxy?.authorization
    }
    if engine.options.credential != nil {
      let authentication = authentication ?? ClientAuthentication()
      self.authentication = authentication
      authentication.sides.prepare(
        &additions, isBlank: engine.credentials.isBlank, hasOwn: request.fields.contains(named: "Authorization"),
        isForwarded: route.isForwarded
      ) { authenticationFlow(for: $0) }
    }
    let form = RequestComposer.Form(
      method: request.method, path: target.path, fields: request.fields.isEmpty ? nil : request.fields)
    do throws(RequestError) {
      let head = try engine.composer.head(
        for: form, to: target, cache: route.headCache, body: body.length, additions: additions)
      var poolRequest = PoolRequest(head, body: body.content)
      poolRequest.timeouts = engine.options.timeouts
      // One limit for all redirections.
      poolRequest.timeouts?.total = nil
      poolRequest.deadline = deadline
      if let interception {
        if let end = interception.deadline(from: engine.loop.now) { poolRequest.deadline = min(deadline, end) }
        bodyBytesSent = 0
        if body.length != .none {
          poolRequest.observer = { [weak self] event, _ in
            if case .bodySent(let bytes) = event { self?.bodyBytesSent = bytes }
          }
        }
      }
      self.poolRequest = poolRequest
      note(.request(method: request.method, url: request.url))
    } catch {
      throw HTTPClientError(.invalidRequest, "the request cannot be sent: \(error)", url: request.url)
    }
    enter(.prepared)
    return nil
  }

  func send() throws(HTTPClientError) -> Stop? {
    guard let route, let poolRequest else { throw .inconsistency }
    if !slot.isSent {
      switch engine.pool.send(poolRequest, with: route.endpoint, in: slot, for: self) {
      case .sent: break
      case .queued: return .callback
      case .needsTask: return .need(.response)
      }
    }
    do throws(TransportError) {
      guard let running = try slot.answer(for: self) else { return .callback }
      answered(by: running)
      return nil
    } catch {
      // `Pool.start` may send the request again.
      return .need(.response)
    }
  }

  func classify() throws(HTTPClientError) -> Stop? {
    guard let exchange = running?.exchange, let target else { throw .inconsistency }
    head = exchange.head
    hasHead = true
    headBytes = exchange.headBytes
    fieldsRead = nil
    if engine.options.keepsCookies { engine.keepCookies(values(of: "set-cookie"), from: target) }
    if let authentication, !authentication.sides.isOpen {
      _ = authentication.sides.accepted(status: head.status) { fields.values(named: $0) }
    }
    if LoadMachine.isDelivered(status: head.status) {
      step = machine.deliver()
    } else {
      redirection = engine.options.followsRedirects ? try next(after: exchange) : nil
      step = machine.responseReceived(status: head.status, redirects: redirection != nil)
    }
    enter(.classified)
    return nil
  }

  func settle() throws(HTTPClientError) -> Stop? {
    switch step {
    case .deliver:
      if interception != nil, opening == nil, !isDecided { return .need(.decision) }
      if let opening, let connection = running?.exchange.connection {
        try opening.open(over: connection, status: head.status, fields, url: request.url)
        endExchange()
        enter(.delivering)
        return nil
      }
      if engine.options.decodesContent, !request.fields.contains(named: "Accept-Encoding") {
        do throws(CodingError) {
          decoder = try ContentDecoding.decoder(for: head) { values(of: "content-encoding") }
        } catch {
          throw HTTPClientError(error, url: request.url)
        }
      }
      enter(.delivering)
      return nil
    case .askRedirection:
      guard let redirection else { throw .inconsistency }
      step = machine.redirectionFollowed(toOtherOrigin: redirection.isElsewhere)
    case .load:
      if !isDrained { return .need(.drain) }
      endExchange()
      if let redirection {
        request = redirection.request
        self.redirection = nil
        // The credentials were for the request before.
        authentication = nil
      }
      enter(.requested)
      return nil
    case .askCredential:
      guard let authentication, request.body.isRestartable else {
        step = machine.credentialRefused()
        return nil
      }
      return take(
        authentication.sides.challenged(
          status: head.status, values: { fields.values(named: $0) }, isForwarded: route?.isForwarded == true,
          canHashBody: request.canHashBody(engine.composer)
        ) { authenticationFlow(for: $0) })
    case .fail(.tooManyRedirections):
      throw HTTPClientError(
        .tooManyRedirections, "more than \(engine.options.redirectsMax) redirections", url: request.url)
    case .fail(.nothingAsked): throw .inconsistency
    }
    return nil
  }

  func deliver() throws(HTTPClientError) -> Stop? {
    if opening != nil { return .owner }
    guard let exchange = running?.exchange else { throw .inconsistency }
    while buffer.count < Self.bufferBytesMax {
      if let decoder, decoder.hasMore {
        try decodeStep(decoder)
        continue
      }
      let waits = wantsBytes && buffer.isEmpty
      do throws(TransportError) {
        switch try exchange.takeData(for: waits ? self : nil, { take($0) }) {
        case true?: break
        case false?:
          enter(.delivered)
          return nil
        case nil: return waits ? .callback : .owner
        }
      } catch {
        throw failure(error)
      }
    }
    return .owner
  }

  func conclude() throws(HTTPClientError) -> Stop? {
    do throws(CodingError) {
      try decoder?.finish()
    } catch {
      throw HTTPClientError(error, url: request.url)
    }
    trailers = running?.exchange.trailers.map { FieldList($0.fields, in: $0.bytes) } ?? []
    endExchange()
    enter(.complete)
    note(.ended(error: nil))
    return nil
  }

  // MARK: - Parts of the stages

  private func makeRoute() async throws(HTTPClientError) {
    guard let target else { throw .inconsistency }
    do throws(TransportError) {
      route = try await engine.route(to: target, tunnels: opening != nil)
    } catch {
      throw failure(error)
    }
  }

  private func awaitResponse() async throws(HTTPClientError) {
    guard let route, let poolRequest else { throw .inconsistency }
    do throws(TransportError) {
      answered(by: try await engine.pool.start(poolRequest, with: route.endpoint, in: slot))
    } catch {
      throw failure(error)
    }
  }

  private func answered(by running: consuming RunningExchange) {
    route?.endpoint.answered(by: running.exchange)
    self.running = consume running
    enter(.answered)
  }

  /// The values of the response's fields with a name.
  private func values(of name: CaseInsensitiveToken) -> [String] { head.fields.values(of: name, in: headBytes) }

  private func authenticationFlow(for role: AuthenticationTarget.Role) -> CredentialFlow<ClientCredentials>? {
    guard let target, let peer = route?.peer(role, of: target) else { return nil }
    let authenticated = AuthenticatedRequest(
      method: request.method, target: role == .proxy ? "http://" + target.authority + target.path : target.path,
      to: role, bodyHash: request.bodyHash(engine.composer))
    return CredentialFlow(with: peer, about: authenticated, from: engine.credentials)
  }

  /// - Returns: The question that has to be answered first, if there is one.
  private func take(_ answer: CredentialFlow<ClientCredentials>.Step?) -> Stop? {
    switch answer {
    case .ask(let question): return .need(.credential(question))
    case .send: step = machine.credentialGiven()
    case .deliver, .cancel, .nothing, nil: step = machine.credentialRefused()
    }
    return nil
  }

  private func askCredential(_ question: ClientCredentials.Question) async {
    let options = engine.options
    var answer = CredentialFlow<ClientCredentials>.Step.ask(question)
    while case .ask(let question) = answer {
      // The program's code may block: it does not run on the loop's thread.
      let credential = await withTaskExecutorPreference(globalConcurrentExecutor) { await options.reply(to: question) }
      answer = authentication?.sides.replied(credential, status: head.status) ?? .nothing
    }
    _ = take(answer)
  }

  private func take(_ piece: Span<UInt8>) {
    if let decoder { decoder.append(piece) } else { keep(piece) }
  }

  private func keep(_ content: Span<UInt8>) {
    contentBytes += content.count
    buffer.append(copying: content)
  }

  private func decodeStep(_ decoder: ContentDecoding) throws(HTTPClientError) {
    do throws(CodingError) {
      try decoder.step { keep($0) }
    } catch {
      throw HTTPClientError(error, url: request.url)
    }
  }

  /// Returns the request that follows a redirecting response (RFC 9110 15.4), or `nil` if the response is no redirection or
  /// names no location.
  private func next(
    after exchange: Exchange
  ) throws(HTTPClientError) -> (request: HTTPClient.Request, isElsewhere: Bool)? {
    guard RedirectPolicy.isFollowed(head.status),
      let location = RedirectPolicy.location(head.fields.values(named: "location", in: exchange.headBytes)),
      let url = LocationValue.target(location, from: request.url)
    else { return nil }
    var next = request
    next.url = url
    let target = try? LoadTarget(url) { nil }
    var change = RedirectPolicy.Change()
    change.leavesOrigin = self.target?.origin != target?.origin
    change.leavesTLS = self.target?.isSecure == true && target?.isSecure != true
    if RedirectPolicy.becomesGet(request.method, after: head.status) {
      next.method = "GET"
      next.body = .none
      next.trailers = nil
      change.dropsBody = true
    } else if !request.body.isRestartable {
      throw HTTPClientError(
        .bodyFailed, "a redirection demands the body again, which is iterated once", url: request.url)
    }
    next.fields.removeAll { !RedirectPolicy.keeps($0.name, after: change) }
    return (next, change.leavesOrigin)
  }
}

extension ClientLoad: LoopCallback, LoopCompletion {
  func perform() { if performStages() { engine.loop.completeAfterTick(self) } }

  /// Resumes the caller, which may submit its next request to the loop at once.
  func complete() { continuation.take()?.resume() }
}
