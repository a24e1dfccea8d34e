import Foundation
import LarkspurHTTP
import LarkspurTransport

/// Transfers for which nothing has to be waited for but a connection and the answer, and for which nobody has to be asked: most of
/// those that a program awaits. They need no task of Swift's own: when there is something to do, the loop calls. Where more turns out to be
/// wanted, a performer goes on from there.
extension Transfer: LoopCallback {
  /// A request on its way: what it takes to go on with it. (Not changed but as a whole: what can only be replaced need not be
  /// guarded against two who change it.)
  struct Quick {
    let target: LoadTarget
    let way: SessionEngine.Way
    /// Nil: there is no cache to be told of it.
    let sendDate: Date?
    /// As they have been sent.
    let extras: RequestComposer.Extras
  }

  /// Begins, or goes on: the connection may have come, or something of the answer.
  func perform() {
    guard performer == nil else { return }
    if quick != nil { goOn() } else if !beginQuickly() { beginSlowly() }
  }

  /// Who comes later does not overtake it on a quicker way.
  private func beginSlowly() {
    let performer = makePerformer()
    performer.willStart()
    engine.crew.run(performer)
  }

  /// False: it has to be waited for something, and nothing has been done.
  func beginQuickly() -> Bool {
    // (Each of these is asked for once: who asks a class for another one holds on to that, and lets it go, at each time.)
    let (own, core, engine) = (request.own, core, engine)
    guard engine.startingCount == 0, isPlain, core.memory.isBlank, let url = own.url,
      let target = try? LoadTarget.of(url, after: engine.lastTarget),
      let way = engine.knownWay(to: target, decider: nil, trafficClass: core.trafficClass(of: request)),
      way.challenges == nil, hasLittleBody
    else { return false }
    if engine.lastTarget !== target { engine.lastTarget = target }
    var sendDate: Date?
    if let cache = core.cache {
      let now = cache.now
      sendDate = now
      guard core.isOutsideCache(request, cache, now: now) else { return false }
    } else {
      guard core.policy(of: request) == .useProtocolCachePolicy else { return false }
    }
    let (pool, endpoint) = (engine.pool, way.endpoint)
    guard pool.hasIdleConnection(to: endpoint) else {
      let extras = RequestComposer.Extras()
      guard !core.pipelines, !request.httpShouldUsePipelining,
        // (What cannot be sent does not wait for a connection first.)
        own.fields == nil && sentData == nil || poolRequest(to: target, by: way, extras) != nil,
        pool.ask(for: endpoint, priority: priority, in: self, for: self)
      else { return false }
      startClock()
      quick = Quick(target: target, way: way, sendDate: sendDate, extras: extras)
      return true
    }
    let extras = core.extras(of: request, by: way, to: target, isRedirected: false)
    guard let poolRequest = poolRequest(to: target, by: way, extras),
      pool.beginNow(poolRequest, with: endpoint, in: self)
    else { return false }
    countSent()
    startClock()
    quick = Quick(target: consume target, way: consume way, sendDate: sendDate, extras: consume extras)
    goOn()
    return true
  }

  /// Nil: it cannot be sent, or waits for the server's consent, which may take long.
  @inline(__always)
  private func poolRequest(
    to target: LoadTarget, by way: SessionEngine.Way, _ extras: RequestComposer.Extras
  ) -> PoolRequest? {
    let body = sentData.map { TaskPerformer.Body($0) } ?? TaskPerformer.Body()
    let request = try? core.poolRequest(
      for: request, to: target, by: way, extras, body.content, body.length, priority: priority)
    return request?.head.context.expectsContinue == true ? nil : request
  }

  /// What is sent with the request.
  private var sentData: Data? {
    if case .data(let data) = task?.source { return data }
    if case .data(let data) = request.own.body { return data }
    return nil
  }

  /// Whether what is sent is so little that it leaves at once, most often: nobody hears how far it is.
  private var hasLittleBody: Bool {
    switch task?.source {
    case .file, .delegateStream: return false
    case .data(let data): return data.count <= Self.bodyBytesMax
    case .request, nil: break
    }
    return switch request.own.body {
    case .none: true
    case .data(let data): data.count <= Self.bodyBytesMax
    case .stream: false
    }
  }

  private static let bodyBytesMax = 16 * 1024

  private func countSent() {
    guard hasSent, let task else { return }
    task.show { $0.bytesSent = max($0.bytesSent, $0.bytesExpectedToSend) }
  }

  private var priority: UInt8 { task?.poolPriority ?? URLSessionTask.poolPriorityDefault }

  /// Whether all of the answer is for who waits for it, and nobody watches.
  private var isPlain: Bool {
    guard core.isPlain, !isHeldUp, !core.mayHaveProtocols else { return false }
    guard let task else { return true }
    let type = type(of: task)
    guard type == URLSessionDataTask.self || type == URLSessionUploadTask.self else { return false }
    switch task.output {
    case .dataHandler, .dataResult: break
    case .fileHandler, .fileResult, .bytes, .delegate: return false
    }
    return task.read { $0.state == .running && $0.delegate == nil && $0.progress == nil }
  }

  private func goOn() {
    // Also if what has come is not the answer yet.
    progressed()
    guard !isHeldUp, hasBegun || send() else { return goSlowly() }
    do throws(TransportError) {
      guard let running = try answer(for: self) else { return }
      guard receiveNow(running.exchange) else {
        self.running = consume running
        return goSlowly()
      }
    } catch {
      return goSlowly()
    }
    // Its connection is others' by now, before its owner hears of it.
    finish()
  }

  private func goSlowly() { engine.crew.run(makePerformer()) }

  /// Sends the request over the connection that it has waited for. False: there is none.
  private func send() -> Bool {
    // What is sent is made once: it may be counted, and the cache is told of it.
    guard engine.pool.hasConnection(for: self), let quick else { return false }
    let extras = core.extras(of: request, by: quick.way, to: quick.target, isRedirected: false)
    guard let request = poolRequest(to: quick.target, by: quick.way, extras) else { return false }
    self.quick = Quick(target: quick.target, way: quick.way, sendDate: quick.sendDate, extras: extras)
    guard engine.pool.sendNow(request, in: self) else { return false }
    countSent()
    return true
  }

  /// False: there is more to the response than what has come, or it is not for the owner as it is.
  private func receiveNow(_ exchange: Exchange) -> Bool {
    guard let url = request.own.url else { return false }
    quick?.way.endpoint.answered(by: exchange)
    let isSafe = request.isSafe
    if let cache = core.cache, cache.isSubclass || isSafe && exchange.concernsCache { return false }
    let status = exchange.status
    guard TaskMachine.isDelivered(status: status) else { return false }
    let fields = ResponseFields.wire(bytes: exchange.headBytes, table: exchange.fields)
    let isSpecial = fields.mayContain(KnownField.contentEncoding, KnownField.setCookie)
    if isSpecial, fields.contains(KnownField.contentEncoding) { return false }
    let response = HTTPURLResponse(
      url: url, statusCode: status, httpVersion: exchange.version, fields: fields, isDecoded: false)
    self.response = response
    if !isSafe { tellCache(of: response) }
    length = Int64(exchange.contentLength ?? -1)
    if isSpecial, fields.contains(KnownField.setCookie) { core.keepCookies(of: response, request) }
    guard !isHeldUp else { return false }
    guard exchange.isReceiving else { return true }
    // (What fails here fails for the performer again.)
    let isTaken = (try? exchange.takePiece { data = Data(copying: $0) }) ?? nil
    guard isTaken != nil else { return false }
    progressed()
    return !exchange.isReceiving && !isHeldUp
  }

  /// What has been stored of the resource may hold no longer.
  private func tellCache(of response: HTTPURLResponse) {
    guard let cache = core.cache, let quick,
      let exchange = core.lateExchange(for: request, quick.extras, sent: quick.sendDate)
    else { return }
    _ = cache.received(response, for: exchange, now: cache.now)
  }

  private func finish() {
    stopClock()
    quick = nil
    guard let task = task ?? core.end(self) else { return resultHasCome() }
    failure = task.complete(nil) {
      $0.response = response
      $0.bytesSent = $0.bytesExpectedToSend
      $0.bytesExpectedToReceive = length
      $0.bytesReceived = Int64(data.count)
    }
    if case .dataResult = task.output {
      core.ended(task)
      return resultHasCome()
    }
    var content = TaskContent()
    content.response = failure == nil ? response : task.response
    content.data = data
    engine.loop.completeAfterTick(TaskEnding(task, self, core, failure, content))
  }
}
