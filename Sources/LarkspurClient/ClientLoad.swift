import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// One load of a client: the state of its stages, from the call to the end of its response's body.
///
/// Threads. `cancel` may be called from any thread. Everything else belongs to the loop while an operation of the load
/// runs there (`run`, `receive`, `finish`), and to the caller's task in between: no operation runs while the caller's code
/// does, so that the bytes which are there are taken without a change of the thread.
final class ClientLoad: @unchecked Sendable {
  /// What the stages wait for.
  enum Stop {
    case route
    /// A connection, and the head of the response.
    case response
    /// The program's answer to a challenge.
    case credential(ClientCredentials.Question)
    /// The rest of a response that is dropped.
    case drain
    /// The next bytes of the body.
    case data
    /// The caller, which has not taken the bytes that are there.
    case owner
  }

  typealias Failure = HTTPClientError

  /// The client, which keeps its connections as long as a load runs.
  private let client: HTTPClient
  let engine: ClientEngine
  /// The current request: after a redirection, the next one.
  private(set) var request: HTTPClient.Request
  var stage = LoadStage.created
  /// The WebSocket that the load opens, or `nil` for a request.
  private let opening: ClientWebSocket?
  private let slot: RequestSlot
  private var machine: LoadMachine
  private var startedAt = Deadline.never
  private var deadline = Deadline.never

  // The current request's parts, in the order of their preparation.
  private var target: LoadTarget?
  private var route: ClientRoute?
  private var poolRequest: PoolRequest?
  private var running: RunningExchange?
  /// The challenges of the current request's origin and proxy.
  private var authentication = LoadAuthentication<ClientCredentials>()
  private var isDrained = false
  private var step = LoadMachine.Step.load
  /// The request that a redirection leads to.
  private var redirection: (request: HTTPClient.Request, isElsewhere: Bool)?

  // The response.
  private(set) var head = ResponseHead()
  /// Whether `head` is the response to the current request.
  private var hasHead = false
  /// The number of bytes of the response's body, decoded.
  private var contentBytes = 0
  private(set) var fields: FieldList = []
  private(set) var trailers: FieldList = []
  private var decoder: ContentDecoding?
  /// The bytes of the body that the caller has not taken.
  private var buffer: [UInt8] = []
  /// The error that follows the buffered bytes.
  private var bodyFailure: HTTPClientError?
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
  }

  func cancel() { slot.cancel() }

  // MARK: - The caller's side

  /// Runs the load up to the head of the response that is delivered, and takes the part of the body that is there.
  func run() async throws(HTTPClientError) {
    try await engine.loop.run { [self] () async throws(HTTPClientError) in try await advanceToOwner() }
  }

  /// Returns the next bytes of the body, or `nil` at its end.
  func next() async throws(HTTPClientError) -> [UInt8]? {
    guard !isOver else {
      throw HTTPClientError(.bodyOver, "the body was read after the end of its closure", url: request.url)
    }
    if buffer.isEmpty, bodyFailure == nil, stage != .complete {
      try await engine.loop.run { [self] () async throws(HTTPClientError) in try await advanceToBytes() }
    }
    guard !buffer.isEmpty else {
      if let bodyFailure { throw bodyFailure }
      return nil
    }
    var bytes: [UInt8] = []
    swap(&bytes, &buffer)
    return bytes
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

  private func advanceToOwner() async throws(HTTPClientError) {
    do throws(HTTPClientError) {
      while let stop = try advance() {
        switch stop {
        case .route, .response, .credential, .drain: try await provide(stop)
        case .data, .owner: return
        }
      }
    } catch {
      try fail(error)
    }
  }

  private func advanceToBytes() async throws(HTTPClientError) {
    do throws(HTTPClientError) {
      while buffer.isEmpty, let stop = try advance() { try await provide(stop) }
    } catch {
      try fail(error)
    }
  }

  /// Ends the load with an error: throws it, or keeps it for the reader of the body, which gets the
  /// bytes before it first.
  private func fail(_ error: HTTPClientError) throws(HTTPClientError) {
    let isOfBody = stage == .delivering || stage == .delivered
    if running == nil { slot.giveUp() }
    endExchange()
    enter(.complete)
    let error = slot.isCancelled ? HTTPClientError(.cancelled, "cancelled", url: request.url) : error
    note(.ended(error: "\(error)"))
    guard isOfBody else { throw error }
    bodyFailure = error
  }

  private func provide(_ stop: Stop) async throws(HTTPClientError) {
    switch stop {
    case .route: try await makeRoute()
    case .response: try await awaitResponse()
    case .credential(let question): await askCredential(question)
    case .drain:
      isDrained = true
      // If the connection breaks, the next request gets another one.
      if let exchange = running?.exchange { _ = try? await exchange.drain(on: engine.loop) }
    case .data: try await awaitData()
    case .owner: break
    }
  }

  @inline(__always)
  private func note(_ kind: @autoclosure () -> HTTPEvent.Kind) {
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
    // A cancellation reaches the slot by the loop's inbox, which this call may have overtaken.
    guard !Task.isCancelled else { throw HTTPClientError(.cancelled, "cancelled", url: request.url) }
    startedAt = engine.loop.now
    if let total = engine.options.timeouts.total { deadline = startedAt.advanced(by: total) }
    enter(.requested)
    return nil
  }

  func findSource() throws(HTTPClientError) -> Stop? {
    if opening != nil, let url = WebSocketHandshake.httpURL(of: request.url) { request.url = url }
    do throws(LoadTarget.Invalid) {
      target = try LoadTarget.of(request.url, after: engine.latestTarget) { nil }
    } catch {
      throw HTTPClientError(error, url: request.url)
    }
    if engine.latestTarget !== target { engine.latestTarget = target }
    (route, poolRequest, isDrained, hasHead, contentBytes) = (nil, nil, false, false, 0)
    enter(.preparing)
    return nil
  }

  func prepare() throws(HTTPClientError) -> Stop? {
    guard let target else { throw .inconsistency }
    guard let route = route ?? engine.knownRoute(to: target, tunnels: opening != nil) else { return .route }
    self.route = route
    // A server on the way may take the body of a GET for the next request.
    if request.method == "GET", !request.body.isNone {
      throw HTTPClientError(.invalidRequest, "a GET request must not have a body", url: request.url)
    }
    let (body, length) = try request.body.transportBody(url: request.url)
    if length == .chunked, route.endpoint.answersByHTTP10 {
      throw HTTPClientError(
        .bodyFailed,
        "the body's length is not known, and the server's last answer was of HTTP/1.0, which has no chunks",
        url: request.url)
    }
    var additions = RequestComposer.AdditionalFields()
    additions.hasLeftOrigin = machine.hasLeftOrigin
    if let opening { additions.replacements = try opening.openingFields(of: request) }
    if engine.options.keepsCookies, machine.redirectCount > 0 || !request.fields.contains(named: "Cookie") {
      additions.cookie = engine.cookieField(for: target)
    }
    if route.isForwarded {
      additions.isForwarded = true
      additions.proxyAuthorization = route.endpoint.route.proxy?.authorization
    }
    if engine.options.credential != nil {
      authentication.prepare(
        &additions, isBlank: engine.credentials.isBlank, hasOwn: request.fields.contains(named: "Authorization"),
        isForwarded: route.isForwarded
      ) { authenticationFlow(for: $0) }
    }
    let form = RequestComposer.Form(
      method: request.method, path: target.path, fields: request.fields.isEmpty ? nil : request.fields)
    do throws(RequestError) {
      let head = try engine.composer.head(
        for: form, to: target, cache: route.headCache, body: length, additions: additions)
      var poolRequest = PoolRequest(head, body: body)
      poolRequest.timeouts = engine.options.timeouts
      // One limit for all redirections.
      poolRequest.timeouts?.total = nil
      poolRequest.deadline = deadline
      self.poolRequest = poolRequest
      note(.request(method: request.method, url: request.url))
    } catch {
      throw HTTPClientError(.invalidRequest, "the request cannot be sent: \(error)", url: request.url)
    }
    enter(.prepared)
    return nil
  }

  func send() throws(HTTPClientError) -> Stop? { .response }

  func classify() throws(HTTPClientError) -> Stop? {
    guard let exchange = running?.exchange, let target else { throw .inconsistency }
    head = exchange.head
    hasHead = true
    fields = FieldList(head.fields, in: exchange.headBytes)
    if engine.options.keepsCookies {
      engine.keepCookies(fields.values(named: "Set-Cookie"), from: target)
    }
    if !authentication.isOpen { _ = authentication.accepted(status: head.status) { fields.values(named: $0) } }
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
      if let opening, let connection = running?.exchange.connection {
        try opening.open(over: connection, status: head.status, fields, url: request.url)
        endExchange()
        enter(.delivering)
        return nil
      }
      if engine.options.decodesContent, !request.fields.contains(named: "Accept-Encoding") {
        do throws(CodingError) {
          decoder = try ContentDecoding.decoder(for: head) { fields.values(named: "Content-Encoding") }
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
      if !isDrained { return .drain }
      endExchange()
      if let redirection {
        request = redirection.request
        self.redirection = nil
        // The credentials were for the request before.
        authentication = LoadAuthentication()
      }
      enter(.requested)
      return nil
    case .askCredential:
      guard engine.options.credential != nil, request.body.isRestartable else {
        step = machine.credentialRefused()
        return nil
      }
      return take(
        authentication.challenged(
          status: head.status, values: { fields.values(named: $0) }, isForwarded: route?.isForwarded == true,
          canHashBody: request.body.canBeHashed
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
      do throws(TransportError) {
        switch try exchange.takeData(for: nil, { take($0) }) {
        case true?: break
        case false?:
          enter(.delivered)
          return nil
        case nil: return buffer.isEmpty ? .data : .owner
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
      running = try await engine.pool.start(poolRequest, with: route.endpoint, in: slot)
    } catch {
      throw failure(error)
    }
    if let exchange = running?.exchange { route.endpoint.answered(by: exchange) }
    enter(.answered)
  }

  private func awaitData() async throws(HTTPClientError) {
    guard let exchange = running?.exchange else { throw .inconsistency }
    do throws(TransportError) {
      if try await !exchange.receiveData({ take($0) }) { enter(.delivered) }
    } catch {
      throw failure(error)
    }
  }

  private func authenticationFlow(for role: AuthenticationTarget.Role) -> CredentialFlow<ClientCredentials>? {
    guard let target, let peer = route?.peer(role, of: target) else { return nil }
    let authenticated = AuthenticatedRequest(
      method: request.method, target: role == .proxy ? "http://" + target.authority + target.path : target.path,
      to: role, bodyHash: request.body.hash)
    return CredentialFlow(with: peer, about: authenticated, from: engine.credentials)
  }

  /// - Returns: The question that has to be answered first, if there is one.
  private func take(_ answer: CredentialFlow<ClientCredentials>.Step?) -> Stop? {
    switch answer {
    case .ask(let question): return .credential(question)
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
      answer = authentication.replied(credential, status: head.status) ?? .nothing
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
      change.dropsBody = true
    } else if !request.body.isRestartable {
      throw HTTPClientError(
        .bodyFailed, "a redirection demands the body again, which is iterated once", url: request.url)
    }
    next.fields.removeAll { !RedirectPolicy.keeps($0.name, after: change) }
    return (next, change.leavesOrigin)
  }
}
