import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Loading by HTTP.
extension TaskPerformer {
  /// So much of a response that is not wanted is read, so that its connection can serve the next request. To read more
  /// would cost more than a new connection.
  private static let drainBytesMax = 64 * 1024

  /// True: the machine wants another request to be loaded.
  func loadFromNetwork(_ request: URLRequest, _ target: LoadTarget) async throws(URLError) -> Bool {
    let asksDelegate = hasDelegate || core.hasDelegate
    let serviceType = request.own.networkServiceType
    let trafficClass = (serviceType == .default ? core.networkServiceType : serviceType).trafficClass
    let known = engine.knownWay(to: target, asksDelegate: asksDelegate, trafficClass: trafficClass)
    let way: SessionEngine.Way
    if let known {
      way = known
    } else {
      way = try await engine.makeWay(to: target, of: core, asksDelegate: asksDelegate, trafficClass: trafficClass)
    }
    if let challenges = way.challenges {
      if let before = self.challenges, before !== challenges { before.isOver(task) }
      self.challenges = challenges
      challenges.isAsked(for: task)
    }
    var extras = RequestComposer.Extras()
    fill(&extras, for: request, target, way)
    if let jar = core.cookieStorage, jar.isSubclass { extras.cookie = try await cookieField(from: jar, for: request) }
    if cache == nil { try applyPolicyWithoutCache(to: request, &extras) }
    var caching: CacheExchange?
    var plan: CachePlan?
    let sendDate = cache?.now ?? .distantPast
    if let cache, !isOutsideCache(request, cache, now: sendDate) {
      let fields = core.composer.fields(of: request, extras)
      plan = planNow(request, fields, cache)
      if plan == nil { plan = try await planLater(request, fields, cache) }
    }
    switch plan {
    case nil: break
    case .load(let exchange)?, .validate(let exchange)?:
      extras.conditions = exchange.addedFields
      caching = exchange
    case .serve(let answer)?: return try await useStored(answer, for: request)
    case .fail(let code)?:
      throw URLError.make(code, "the response is not in the cache, and may not be loaded", url: request.url)
    }
    if isHeldUp { try await passGate() }
    let usedBefore = usedStream
    let knownBody = try knownBody(of: request)
    let body: Body
    if let knownBody { body = knownBody } else { body = try await askedBody(of: request) }
    if machine.redirectCount > 0 { expectToSend(body) }
    if request.own.method == "POST", body.length != .none {
      extras.addsDefaultContentType = true
    }
    var poolRequest = try poolRequest(for: request, target, way, extras, body)
    if wantsStory(of: body) { observe(&poolRequest, url: request.url) }
    let running: RunningExchange
    do throws(TransportError) {
      running = try await engine.pool.begin(poolRequest, with: way.endpoint, in: scope)
    } catch {
      collectMetrics(of: request, isProxied: way.proxy != nil)
      if try await hasWaitedForConnectivity(after: error) {
        // Nobody has read from it.
        usedStream = usedBefore
        return true
      }
      if !isInterrupted, let answer = standIn(for: caching) { return try await useStored(answer, for: request) }
      throw URLError(error, url: request.url)
    }
    clock.progressed()
    if caching == nil, let cache, running.exchange.concernsCache || decidesStoring(in: cache) {
      caching = lateExchange(for: request, extras, sent: sendDate)
    }
    let next: Next
    do throws(URLError) {
      next = try await received(running.exchange, of: request, target, way, caching)
    } catch {
      scope.failedPeer = running.exchange.peer
      running.end()
      collectMetrics(of: request, isProxied: way.proxy != nil)
      throw error
    }
    // Its metrics are complete, and its connection is others'.
    running.end()
    collectMetrics(of: request, isProxied: way.proxy != nil)
    switch next {
    case .nothing: return false
    case .load: return true
    case .useStored(let answer): return try await useStored(answer, for: request)
    }
  }

  /// What comes after a response.
  private enum Next {
    case nothing
    case load
    case useStored(CacheAnswer)
  }

  // MARK: - The request

  private func fill(
    _ extras: inout RequestComposer.Extras, for request: URLRequest, _ target: LoadTarget, _ way: SessionEngine.Way
  ) {
    extras.isElsewhere = machine.isElsewhere
    if handlesCookies(of: request), let jar = core.cookieStorage, jar.mayHaveCookies, !jar.isSubclass,
      let url = request.url
    {
      extras.cookie = jar.cookieField(
        for: url, mainDocument: request.mainDocumentURL, isSafeMethod: request.isSafe,
        isTopLevel: request.isTopLevel, now: Date())
    }
    extras.conditions = downloadConditions
    let isForwarded = way.proxy?.forwards(toSecure: target.isSecure) ?? false
    extras.isForwarded = isForwarded
    if isForwarded { extras.proxyAuthorization = way.endpoint.route.proxy?.authorization }
    prepareAuthentication(of: request, target, isForwarded ? way.proxy : nil, &extras)
  }

  private func poolRequest(
    for request: URLRequest, _ target: LoadTarget, _ way: SessionEngine.Way, _ extras: RequestComposer.Extras,
    _ sent: Body
  ) throws(URLError) -> PoolRequest {
    let (body, length) = (sent.content, sent.length)
    if request.own.method == "GET" {
      // As Darwin does it: a server on the way may take a GET's body for the next request.
      guard case .none = body else {
        throw URLError.make(.dataLengthExceedsMaximum, "a GET request must not have a body", url: request.url)
      }
    }
    do throws(RequestError) {
      let head = try core.composer.head(
        for: request, to: target, known: way.knownFields, body: length, extras: extras)
      var poolRequest = PoolRequest(head, body: body, priority: task.poolPriority)
      poolRequest.mayBePipelined = core.pipelines || request.httpShouldUsePipelining
      return poolRequest
    } catch {
      throw URLError.make(.badURL, "the request cannot be sent: \(error)", url: request.url)
    }
  }

  /// Whether anybody wants to know how far the request is, and what the server says before its response.
  private func wantsStory(of body: Body) -> Bool {
    if hasDelegate, body.length != .none || wants(.informationalResponse) { return true }
    return task.read { $0.progress != nil || $0.bytesExpectedToSend != 0 }
  }

  private func observe(_ poolRequest: inout PoolRequest, url: URL?) {
    poolRequest.observer = { [self] event, _ in
      switch event {
      case .bodySent(let bytes): sent(Int64(bytes))
      case .requestSent: sent(task.read { max($0.bytesSent, $0.bytesExpectedToSend) })
      case .interimReceived(let status, let bytes, let fields):
        clock.progressed()
        guard hasDelegate, status != 101, let url, wants(.informationalResponse) else { return }
        let response = HTTPURLResponse(
          url: url, statusCode: status, httpVersion: "HTTP/1.1", fields: .wire(bytes: bytes, table: fields),
          isDecoded: false)
        tellLater { session, task, delegate in
          delegate.urlSession(session, task: task, didReceiveInformationalResponse: response)
        }
      default: break
      }
    }
  }

  /// So much of the body has left.
  private func sent(_ total: Int64) {
    clock.progressed()
    let (before, expected) = task.read { details in
      defer { details.bytesSent = max(details.bytesSent, total) }
      return (details.bytesSent, details.bytesExpectedToSend)
    }
    guard total > before else { return }
    task.updateProgress()
    guard hasDelegate, wants(.sentBody), sentBytes.add(from: before, to: total) else { return }
    tellLater(of: sentBytes, expected: expected)
  }

  // MARK: - The response

  @inline(__always)
  private func received(
    _ exchange: Exchange, of request: URLRequest, _ target: LoadTarget, _ way: SessionEngine.Way,
    _ caching: CacheExchange?
  ) async throws(URLError) -> Next {
    guard let url = request.url else { throw URLError(.badURL) }
    let head = exchange.head
    let fields = ResponseFields.wire(bytes: exchange.headBytes, table: head.fields)
    let decoder = try ContentDecoding.decoder(for: head, fields, of: request)
    let response = HTTPURLResponse(
      url: url, statusCode: head.status, httpVersion: head.minorVersion == 0 ? "HTTP/1.0" : "HTTP/1.1",
      fields: fields, isDecoded: decoder != nil)
    latestResponse = response
    if response.fields.contains(KnownField.setCookie) { try await keepCookies(of: response, request) }
    for keep in authentication?.accepted(by: response) ?? [] { try await doElsewhere(keep) }
    var storing: CacheStoring?
    switch cacheVerdict(on: response, caching) {
    case .deliver: break
    case .deliverAndStore(let wanted): storing = wanted
    case .useStored(let answer):
      try await drain(exchange)
      return .useStored(answer)
    }
    var redirection: CacheStoring?
    var step = machine.responseReceived(response)
    while true {
      switch step {
      case .load:
        if let redirection {
          try await storeRedirection(redirection, from: exchange, decoder)
        } else {
          try await drain(exchange)
        }
        return .load
      case .askRedirection(let response, let next):
        redirection = storing
        step = try await self.redirection(response, to: next)
      case .askCredential(let response):
        let isForwarded = way.proxy?.forwards(toSecure: target.isSecure) ?? false
        step = try await answerChallenge(of: response, to: request, target, isForwarded ? way.proxy : nil)
      case .deliver(let response):
        guard try admits(response) else {
          try await drain(exchange)
          return .load
        }
        if storing != nil { content.keepsCopy(upTo: storing?.bodyBytesMax ?? 0, for: task.output) }
        try await deliver(response, from: exchange, decoder)
        if let storing { try await storeContent(storing) }
        return try wantsAnotherPart() ? .load : .nothing
      case .fail(let error): throw error
      }
    }
  }

  /// Reads the rest of a response that is not wanted, if there is little of it.
  private func drain(_ exchange: Exchange) async throws(URLError) {
    var nothing: Data?
    _ = try await drain(exchange, keeping: &nothing)
  }

  /// The same, keeping what is read where something is given to keep it in. Whether that was all.
  func drain(_ exchange: Exchange, keeping kept: inout Data?) async throws(URLError) -> Bool {
    guard exchange.isReceiving else { return true }
    let canceller = exchange.canceller
    let timer = engine.loop.startTimer(engine.loop.now.advanced(by: Exchange.drainTimeMax)) { canceller?.cancel() }
    defer { engine.loop.stopTimer(timer) }
    var count = 0
    do throws(TransportError) {
      while count <= Self.drainBytesMax, exchange.isReceiving,
        try await exchange.receivePiece({ piece in
          count += piece.count
          kept?.append(copying: piece)
        })
      {
        clock.progressed()
      }
    } catch {
      if isInterrupted { throw URLError(error, url: machine.request.url) }
      // Nobody wants it: the connection is gone, and that is all.
      return false
    }
    return count <= Self.drainBytesMax
  }
}
