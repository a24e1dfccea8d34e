import Foundation
import LarkspurHTTP
import LarkspurTransport

/// Loads for which nothing has to be waited for but a connection and the answer, and for which nobody has to be asked: most of
/// those that a program awaits. They need no task of Swift's own: when there is something to do, the loop calls. Where more turns out to be
/// wanted, `run` goes on from there.
extension TaskPerformer {
  /// A request on its way: what it takes to go on with it, and no more, for it is moved about.
  struct QuickLoad: ~Copyable {
    let target: LoadTarget
    let way: SessionEngine.Way
    let sendDate: Date
    /// As they have been sent.
    var extras: RequestComposer.Extras
    /// Nil: it waits for a connection.
    var begun: BegunRequest?
    /// From the response's head on.
    var running: RunningExchange?
    /// Whether the head is the owner's already.
    var isDelivering = false

    init(_ load: borrowing NetworkLoad) {
      (target, way, sendDate, extras) = (load.target, load.way, load.sendDate, load.extras)
    }

    func load(of request: URLRequest) -> NetworkLoad {
      NetworkLoad(request: request, target: target, way: way, extras: extras, sendDate: sendDate)
    }
  }

  /// Begins the task, or goes on with it: the connection may have come, or something of the answer.
  func perform() {
    guard isUnderWay else {
      if !beginQuickly() { beginSlowly() }
      return
    }
    if let quick = own.state.quick.take() { goOn(with: quick) }
  }

  /// Who comes later does not overtake it on a quicker way.
  private func beginSlowly() {
    isStarting = true
    engine.startingCount += 1
    engine.crew.run(self)
  }

  /// It runs now: jobs keep their order.
  func countAsStarted() {
    guard isStarting else { return }
    isStarting = false
    engine.startingCount -= 1
  }

  /// False: it has to be waited for something, and nothing has been done.
  func beginQuickly() -> Bool {
    let request = machine.request
    guard engine.startingCount == 0, isPlain, core.memory.isBlank, request.isSafe, case .none = request.own.body,
      let url = request.url,
      let target = try? LoadTarget.of(url, after: engine.lastTarget),
      let way = engine.knownWay(to: target, asksDelegate: core.hasDelegate, trafficClass: trafficClass(of: request)),
      way.challenges == nil
    else { return false }
    engine.lastTarget = target
    var load = NetworkLoad(request: request, target: target, way: way)
    if let cache {
      load.sendDate = cache.now
      guard isOutsideCache(request, cache, now: load.sendDate) else { return false }
    } else {
      guard policy(of: request) == .useProtocolCachePolicy else { return false }
    }
    guard engine.pool.hasIdleConnection(to: way.endpoint) else {
      guard !core.pipelines, !request.httpShouldUsePipelining,
        // (What cannot be sent does not wait for a connection first.)
        request.own.fields == nil || (try? poolRequest(for: load, Body())) != nil,
        engine.pool.ask(for: way.endpoint, priority: task.poolPriority, in: scope, for: self)
      else { return false }
      startClock()
      own.state.quick = QuickLoad(load)
      return true
    }
    fill(&load)
    guard let poolRequest = try? poolRequest(for: load, Body()),
      let begun = engine.pool.beginNow(poolRequest, with: way.endpoint, in: scope)
    else { return false }
    startClock()
    var quick = QuickLoad(load)
    quick.begun = consume begun
    goOn(with: quick)
    return true
  }

  /// Whether the task is one without a body, and all of the answer is for who waits for it.
  private var isPlain: Bool {
    guard type(of: task) == URLSessionDataTask.self, !core.hasTaskDelegate, !core.mayHaveProtocols,
      core.cookieStorage?.isSubclass != true
    else { return false }
    switch task.output {
    case .dataHandler, .dataResult: break
    case .fileHandler, .fileResult, .bytes, .delegate: return false
    }
    return task.read {
      $0.state == .running && $0.delegate == nil && $0.progress == nil && $0.bytesExpectedToSend == 0
    }
  }

  private func goOn(with quick: consuming QuickLoad) {
    var hasEnded = false
    if !isHeldUp, isSent(&quick) {
      do throws(TransportError) {
        guard let running = try quick.begun?.answer(for: self, in: scope) else {
          return own.state.quick = consume quick
        }
        progressed()
        hasEnded = receiveNow(running.exchange, &quick.isDelivering)
        quick.running = consume running
      } catch {
        quick.begun?.failure = error
      }
    }
    guard hasEnded else {
      own.state.quick = consume quick
      return engine.crew.run(self)
    }
    // Its connection is others' before its owner hears of it.
    _ = consume quick
    stopClock()
    finish(nil, nil)
  }

  /// Sends the request over the connection that it has waited for, if it has. False: there is none.
  private func isSent(_ quick: inout QuickLoad) -> Bool {
    guard quick.begun == nil else { return true }
    // What is sent is made once: it may be counted, and the cache is told of it.
    guard engine.pool.hasConnection(for: scope) else { return false }
    var load = quick.load(of: machine.request)
    fill(&load)
    guard let request = try? poolRequest(for: load, Body()) else { return false }
    quick.extras = load.extras
    quick.begun = engine.pool.sendNow(request, in: scope)
    return quick.begun != nil
  }

  /// False: there is more to the response than what has come, or it is not for the owner as it is.
  private func receiveNow(_ exchange: Exchange, _ isDelivering: inout Bool) -> Bool {
    guard authentication == nil, let url = machine.request.url else { return false }
    if let cache, exchange.concernsCache || decidesStoring(in: cache) { return false }
    let status = exchange.status
    guard !(300..<400).contains(status), status != 401, status != 407 else { return false }
    let fields = ResponseFields.wire(bytes: exchange.headBytes, table: exchange.fields)
    guard !fields.contains(KnownField.contentEncoding) else { return false }
    let response = HTTPURLResponse(
      url: url, statusCode: status, httpVersion: exchange.version, fields: fields, isDecoded: false)
    latestResponse = response
    if fields.contains(KnownField.setCookie) { keepCookiesNow(of: response, machine.request) }
    guard case .deliver = machine.responseReceived(response) else { return false }
    isDelivering = true
    // (What fails here fails in `run` again.)
    return beginNow(response, length: Int64(exchange.contentLength ?? -1))
      && (try? deliverNow(from: exchange, nil)) == true
  }

  /// Goes on where the answer has to be waited for in another way, or is more than is taken at once.
  func goOnFromQuick() async throws(URLError) -> Bool {
    guard var quick = own.state.quick.take() else { throw URLError.make(.unknown) }
    var load = quick.load(of: machine.request)
    if let running = quick.running.take() {
      return try await receive(running, of: load, isDelivering: quick.isDelivering)
    }
    if quick.begun == nil {
      guard !isInterrupted else {
        engine.pool.stopAsking(in: scope)
        throw URLError.make(.cancelled)
      }
      fill(&load)
    }
    let request: PoolRequest
    do throws(URLError) {
      request = try poolRequest(for: load, Body())
    } catch {
      if let begun = quick.begun.take() { begun.giveUp(in: scope) } else { engine.pool.stopAsking(in: scope) }
      throw error
    }
    return try await send(request, for: load, after: quick.begun)
  }
}
