import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The stages of a client's load, with its requests, responses and options.
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
      let waits = awaitsBytes && buffer.isEmpty
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

  func makeRoute() async throws(HTTPClientError) {
    guard let target else { throw .inconsistency }
    do throws(TransportError) {
      route = try await engine.route(to: target, tunnels: opening != nil)
    } catch {
      throw failure(error)
    }
  }

  func awaitResponse() async throws(HTTPClientError) {
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

  func askCredential(_ question: ClientCredentials.Question) async {
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
