import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// The stages of a load. Each is written once, runs without waiting, and returns what it needs first, if anything:
///
/// ```
///  start -> findSource -> prepare -> send -> classify -> settle -> deliver -> conclude -> complete
///               ^                                          |                     |
///               '------------- redirection, credential, another part ------------'
/// ```
///
/// `perform` runs them from callbacks of the loop, which bring a connection, the cache's plan, and what the server
/// sends. A load that needs more gets a task of Swift's, a worker: `run` provides what a stage needs, and runs the
/// stages again from there.
extension Transfer {
  /// Where a load stands: which stage runs next.
  enum Stage {
    case created
    case requested
    case preparing
    case prepared
    case answered
    case classified
    case delivering
    case delivered
    case complete
  }

  /// What a stage needs before it can run.
  enum Need {
    /// The end of a suspension, or the error of an interruption.
    case resumption
    /// Time to pass before a resumable upload continues.
    case delay(Duration)
    /// The delegate's agreement to an upload resource of another origin.
    case uploadResource(ResumableUpload.Question)
    /// An answer of the program's protocols.
    case protocolLoad
    /// The content of a `file:` or `data:` URL.
    case localLoad(URL)
    case route((any URLSessionTaskDelegate)?, SessionEngine.RouteNeeds)
    case cookies(HTTPCookieStorage)
    case cachePlan(FieldList, URLCache)
    case bodyStream
    /// A connection, and the head of the response.
    case response
    /// Nothing but a callback, which has been subscribed.
    case callback
    case chores
    case drain
    case redirection(HTTPURLResponse, URLRequest)
    case credential(HTTPURLResponse)
    /// The delegate's disposition of the response, or a file.
    case starting(HTTPURLResponse, length: Int64)
    case content
    case storing(CacheStoring)
    /// The work of a connection that another protocol uses.
    case live
    /// The next event of such a connection, which calls `perform`.
    case event
  }

  /// Runs the stages in their order, as far as they go without waiting.
  ///
  /// - Returns: What the next stage needs, or `nil` if the load is complete.
  func advance() throws(URLError) -> Need? {
    while true {
      let need: Need? =
        switch loopBound.state.stage {
        case .created: try start()
        case .requested: try findSource()
        case .preparing: try prepare()
        case .prepared: try send()
        case .answered: try classify()
        case .classified: try settle()
        case .delivering: try deliver()
        case .delivered: try conclude()
        case .complete: nil
        }
      if let need { return need }
      if case .complete = loopBound.state.stage { return nil }
    }
  }

  func enter(_ stage: Stage) { loopBound.state.stage = stage }

  // MARK: - Callbacks

  /// Runs the load up to the next wait, from a callback of the loop or from the caller's task on the loop.
  ///
  /// - Returns: `false` if the load needs a worker.
  func performStages() -> Bool {
    guard loadFailure == nil, loopBound.state.need == nil else { return false }
    if case .created = loopBound.state.stage {
      // A load that comes later does not overtake those that are about to get a worker.
      guard engine.startingCount == 0 else { return false }
    } else {
      // A callback counts as progress, also if what has come is not the response yet.
      progressed()
      if isHalted { return false }
    }
    do throws(URLError) {
      guard let need = try advance() else { return completeNow() }
      switch need {
      case .callback, .event: return true
      default: loopBound.state.need = need
      }
    } catch {
      loadFailure = error
    }
    return false
  }

  /// Completes the load, if nothing of its end has to be waited for.
  private func completeNow() -> Bool {
    guard download == nil, callsIfAny?.isPending != true else { return false }
    switch output {
    case .dataResult, .fileResult, .bytes: if metrics != nil { return false }
    case .dataHandler, .fileHandler, .delegate: break
    }
    stopClock()
    complete(failure: nil, metrics?.make())
    return true
  }

  /// Has a task carry the load on.
  func startWorker() {
    hasWorker = true
    if !slot.isInFlight, !slot.isRequestingConnection {
      isStarting = true
      engine.startingCount += 1
    }
    engine.taskPool.run(self)
  }

  // MARK: - The worker

  /// Carries the load on to its end or to the wait for an event, and provides what its stages need.
  @inline(__always)
  func run() async {
    hasWorker = true
    if isStarting {
      isStarting = false
      engine.startingCount -= 1
    }
    // Makes the task, if there is none: from here on the load may call its delegate.
    _ = task
    do throws(URLError) {
      if let loadFailure { throw loadFailure }
      if let need = loopBound.state.need.take() { try await provide(need) }
      while let need = try advance() {
        if case .event = need { return hasWorker = false }
        try await provide(need)
      }
      try download?.nameFile()
    } catch {
      abandonExchange()
      loadFailure = interruption ?? error
    }
    stopClock()
    // A protocol's own error, unless the task has been ended before. From here on only a cancellation can change the
    // result: see `complete`.
    let ownFailure = interruption == nil ? protocolFailure : nil
    let failure = loadFailure ?? cancellation
    if failure == nil { await download?.giveFile() }
    var finalMetrics: URLSessionTaskMetrics?
    switch output {
    // Performance: one dispatch to the queue brings the last two calls.
    case .delegate, .dataHandler, .fileHandler: finalMetrics = metrics?.make()
    case .dataResult, .fileResult, .bytes: await metrics?.notifyBeforeResult()
    }
    if let callsIfAny, !core.isQueueStuck.load(ordering: .relaxed) { await callsIfAny.waitForPending() }
    complete(failure: ownFailure ?? failure?.failing(at: machine.request.url).from(slot.failedPeer), finalMetrics)
  }

  /// Runs the worker on the task of the caller that awaits the result.
  @inline(__always)
  func runForCaller() async {
    let tick = engine.loop.tickNumber
    await run()
    // A caller may make one load after another that waits for nothing. Others get the loop in between.
    if engine.loop.tickNumber == tick { await Task.yield() }
  }

  func provide(_ need: Need) async throws(URLError) {
    switch need {
    case .resumption: try await passGate()
    case .delay(let duration): try await resumable?.wait(for: duration)
    case .uploadResource(let question): try await resumable?.ask(question)
    case .protocolLoad: try await loadByProtocol()
    case .localLoad(let url): try await loadLocally(url)
    case .route(let decider, let needs): try await resolveRoute(decider, needs)
    case .cookies(let jar): try await addCookies(of: jar)
    case .cachePlan(let fields, let cache): try await plan(fields, cache)
    case .bodyStream: try await askForBody()
    case .response: try await awaitResponse()
    case .callback, .event: break
    case .chores: try await doChores()
    case .drain: try await drainResponse()
    case .redirection(let response, let next): load?.arrival?.step = try await askRedirection(response, to: next)
    case .credential(let response): load?.arrival?.step = try await askCredential(for: response)
    case .starting(let response, let length): try await startLater(response, length: length)
    case .content: try await deliverRest()
    case .storing(let storing): try await askAndStore(storing)
    case .live: try await runLive()
    }
  }

  /// Runs work that may block on a queue, and waits for it. Performance: not inlined, because that would cost loads that
  /// do not use it.
  @inline(never)
  func doElsewhere(
    on queue: DispatchQueue = .global(qos: .utility), _ work: @escaping @Sendable () -> Void
  ) async throws(URLError) {
    let question = OneShot<Void>()
    queue.async {
      work()
      question.set(())
    }
    _ = try await waiting(givingUpBy: { question.giveUp() }, { await question.get() })
  }
}

extension Transfer: LoopCallback, TaskPoolWork {
  func perform() {
    guard !hasWorker else { return }
    if !performStages() { startWorker() }
  }
}
