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
    let (decider, trafficClass) = (engine.decider(of: task, for: target, core), core.trafficClass(of: request))
    let known = engine.knownWay(to: target, decider: decider, trafficClass: trafficClass)
    let way: SessionEngine.Way
    if let known {
      way = known
    } else {
      way = try await engine.makeWay(to: target, of: core, decider: decider, trafficClass: trafficClass)
    }
    if let challenges = way.challenges {
      if let before = self.challenges, before !== challenges { before.isOver(task) }
      self.challenges = challenges
      challenges.isAsked(for: task)
    }
    var load = NetworkLoad(request: request, target: target, way: way)
    fill(&load)
    if let jar = core.cookieStorage, jar.isSubclass {
      load.extras.cookie = try await cookieField(from: jar, for: request)
    }
    if cache == nil { try applyPolicyWithoutCache(to: request, &load.extras) }
    var plan: CachePlan?
    if let cache {
      let now = cache.now
      load.sendDate = now
      if !core.isOutsideCache(request, cache, now: now) {
        let fields = core.composer.fields(of: request, load.extras)
        plan = planNow(request, fields, cache)
        if plan == nil { plan = try await planLater(request, fields, cache) }
      }
    }
    switch plan {
    case nil: break
    case .load(let exchange)?, .validate(let exchange)?:
      load.extras.conditions = exchange.addedFields
      load.caching = exchange
    case .serve(let answer)?: return try await useStored(answer, for: request)
    case .fail(let code)?:
      throw URLError.make(code, "the response is not in the cache, and may not be loaded", url: request.url)
    }
    if transfer.isHeldUp { try await transfer.passGate() }
    load.usedBefore = usedStream
    let knownBody = try knownBody(of: request)
    let body: Body
    if let knownBody { body = knownBody } else { body = try await askedBody(of: request) }
    if body.length == .chunked, way.endpoint.answersByHTTP10 {
      throw URLError.make(
        .requestBodyStreamExhausted,
        "the body's length is not known, and the server's last answer was of HTTP/1.0, which has no chunks",
        url: request.url)
    }
    if body.length != .none { expectToSend(body) }
    var poolRequest = try poolRequest(for: load, body)
    if wantsStory(of: body) { observe(&poolRequest, url: request.url) }
    return try await send(poolRequest, for: load)
  }

  /// Goes on with a request that has been begun quickly.
  func goOn(from quick: Transfer.Quick) async throws(URLError) -> Bool {
    var load = NetworkLoad(
      request: machine.request, target: quick.target, way: quick.way, extras: quick.extras, sendDate: quick.sendDate)
    if let running = transfer.running.take() {
      littleHasLeft()
      let isDelivering = transfer.response != nil
      if isDelivering { adoptContent() }
      return try await receive(running, of: load, isDelivering: isDelivering)
    }
    if !transfer.hasBegun {
      guard transfer.interruption == nil else {
        engine.pool.stopAsking(in: transfer)
        throw URLError.make(.cancelled)
      }
      fill(&load)
    }
    if transfer.hasSent { littleHasLeft() }
    var request: PoolRequest
    do throws(URLError) {
      let body = try knownBody(of: load.request) ?? Body()
      request = try poolRequest(for: load, body)
      if wantsStory(of: body) { observe(&request, url: load.request.url) }
    } catch {
      if transfer.hasBegun { transfer.giveUp() } else { engine.pool.stopAsking(in: transfer) }
      throw error
    }
    return try await send(request, for: load)
  }

  func send(_ poolRequest: PoolRequest, for load: NetworkLoad) async throws(URLError) -> Bool {
    let running: RunningExchange
    do throws(TransportError) {
      running = try await engine.pool.begin(poolRequest, with: load.way.endpoint, in: transfer)
    } catch {
      collectMetrics(of: load)
      if try await hasWaitedForConnectivity(after: error) {
        // Nobody has read from it.
        usedStream = load.usedBefore
        return true
      }
      if transfer.interruption == nil, let answer = standIn(for: load.caching) {
        return try await useStored(answer, for: load.request)
      }
      throw URLError(error, url: load.request.url)
    }
    transfer.progressed()
    return try await receive(running, of: load)
  }

  /// - Parameter isDelivering: The response's head has been looked at, and is the owner's; content may follow.
  @inline(__always)
  func receive(
    _ running: consuming RunningExchange, of load: NetworkLoad, isDelivering: Bool = false
  ) async throws(URLError) -> Bool {
    var next = Next.nothing
    do throws(URLError) {
      if isDelivering {
        try await deliverRest(from: running.exchange, nil)
      } else {
        next = try await received(running.exchange, of: load)
      }
    } catch {
      transfer.failedPeer = running.exchange.peer
      running.end()
      collectMetrics(of: load)
      throw error
    }
    // Its metrics are complete, and its connection is others'.
    running.end()
    collectMetrics(of: load)
    switch next {
    case .nothing: return false
    case .load: return true
    case .useStored(let answer): return try await useStored(answer, for: load.request)
    }
  }

  /// What comes after a response.
  private enum Next {
    case nothing
    case load
    case useStored(CacheAnswer)
  }

  // MARK: - The request

  private func fill(_ load: inout NetworkLoad) {
    load.extras = core.extras(of: load.request, by: load.way, to: load.target, isRedirected: machine.redirectCount > 0)
    load.extras.isElsewhere = machine.isElsewhere
    if download != nil { load.extras.conditions = downloadConditions }
    if authentication != nil || !core.memory.isBlank {
      prepareAuthentication(of: load.request, load.target, load.forwarder, &load.extras)
    }
  }

  private func poolRequest(for load: NetworkLoad, _ body: Body) throws(URLError) -> PoolRequest {
    try core.poolRequest(
      for: load.request, to: load.target, by: load.way, load.extras, body.content, body.length,
      priority: task.poolPriority)
  }

  /// Whether anybody wants to know how far the request is, and what the server says before its response.
  private func wantsStory(of body: Body) -> Bool {
    if hasDelegate, body.length != .none || wants(.informationalResponse) { return true }
    return task.read { $0.progress != nil || $0.shown.bytesExpectedToSend != 0 }
  }

  private func observe(_ poolRequest: inout PoolRequest, url: URL?) {
    poolRequest.observer = { [self] event, _ in
      switch event {
      case .bodySent(let bytes): sent(Int64(bytes))
      case .requestSent: sent(task.read { max($0.shown.bytesSent, $0.shown.bytesExpectedToSend) })
      case .interimReceived(let status, let bytes, let fields):
        transfer.progressed()
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

  /// A body that nobody has observed has left before anybody could have looked.
  private func littleHasLeft() { sent(task.read(\.shown.bytesExpectedToSend)) }

  /// So much of the body has left.
  private func sent(_ total: Int64) {
    transfer.progressed()
    let (before, expected) = task.show { shown in
      defer { shown.bytesSent = max(shown.bytesSent, total) }
      return (shown.bytesSent, shown.bytesExpectedToSend)
    }
    guard total > before else { return }
    task.updateProgress()
    guard hasDelegate, wants(.sentBody), sentBytes.add(SentBytes(from: before, to: total)) else { return }
    tellLater(of: sentBytes, expected: expected)
  }

  // MARK: - The response

  @inline(__always)
  private func received(_ exchange: Exchange, of load: NetworkLoad) async throws(URLError) -> Next {
    let request = load.request
    guard let url = request.url else { throw URLError(.badURL) }
    load.way.endpoint.answered(by: exchange)
    var caching = load.caching
    if caching == nil, let cache, !request.isSafe || exchange.concernsCache || decidesStoring(in: cache) {
      caching = core.lateExchange(for: request, load.extras, sent: load.sendDate)
    }
    let head = exchange.head
    let fields = ResponseFields.wire(bytes: exchange.headBytes, table: head.fields)
    let decoder = try ContentDecoding.decoder(for: head, fields, of: request)
    let response = HTTPURLResponse(
      url: url, statusCode: head.status, httpVersion: exchange.version, fields: fields, isDecoded: decoder != nil)
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
        step = try await answerChallenge(of: response, to: request, load.target, load.forwarder)
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
        transfer.progressed()
      }
    } catch {
      if transfer.interruption != nil { throw URLError(error, url: machine.request.url) }
      // Nobody wants it: the connection is gone, and that is all.
      return false
    }
    return count <= Self.drainBytesMax
  }
}
