import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// The stages of a session's loads. `perform` runs them from callbacks of the loop, which bring a connection, the
/// cache's plan, and the server's response. A load that needs more gets a task of Swift's, a worker: `run` provides
/// what a stage needs, and runs the stages again from there.
extension Load: LoadStages {
  /// Why the stages have stopped.
  enum Stop {
    case need(Need)
    case wait(Wait)
  }

  /// What ends a wait.
  enum Wait {
    /// A callback, which has been subscribed.
    case callback
    /// The next event of a connection that another protocol uses. The connection calls `perform`, perhaps hours later: no
    /// worker waits for that.
    case event
    /// The end of a suspension, or the error of an interruption.
    case resumption
  }

  /// What a worker provides before a stage can run.
  enum Need {
    /// The changes of the program's interceptors to the request.
    case adaptation
    /// The decision of the program's interceptors about a response.
    case decision(HTTPURLResponse)
    /// Time to pass before a resumable upload continues.
    case delay(Duration)
    /// The delegate's agreement to an upload resource of another origin.
    case uploadResource(ResumableUpload.Question)
    /// An answer of the program's protocols.
    case protocolLoad
    /// The content of a `file:` or `data:` URL.
    case localLoad(URL)
    /// The file of a download task, in segments.
    case segments(TaskDownload.Segments)
    case route((any URLSessionTaskDelegate)?, SessionEngine.RouteNeeds)
    case cookies(HTTPCookieStorage)
    case bodyStream
    /// A connection, and the head of the response.
    case response
    case chores
    case drain
    case redirection(HTTPURLResponse, URLRequest)
    case credential(HTTPURLResponse)
    /// The delegate's disposition of the response, or a file.
    case starting(HTTPURLResponse, length: Int64)
    /// The owner's readiness for more content.
    case owner
    case storing(CacheStoring)
    /// The work of a connection that another protocol uses.
    case live
  }

  var stage: LoadStage {
    get { loopBound.state.stage }
    set { loopBound.state.stage = newValue }
  }

  // MARK: - Callbacks

  /// Runs the load up to the next wait, from a callback of the loop or from the caller's task on the loop.
  ///
  /// - Returns: `false` if the load needs a worker.
  func performStages() -> Bool {
    guard loadFailure == nil, loopBound.state.stop == nil else { return false }
    if case .created = loopBound.state.stage {
      // A load that comes later does not overtake those that are about to get a worker.
      guard engine.startingCount == 0 else { return false }
    } else {
      // A callback counts as progress, even if the response has not arrived yet.
      progressed()
      if isHalted { return false }
    }
    do throws(URLError) {
      guard let stop = try advance() else { return isCompleted() }
      switch stop {
      case .wait(.callback), .wait(.event): return true
      case .wait(.resumption), .need: loopBound.state.stop = stop
      }
    } catch {
      loadFailure = error
    }
    return false
  }

  /// Completes the load, if nothing of its end has to be waited for.
  private func isCompleted() -> Bool {
    guard download == nil, callsIfAny?.isPending != true else { return false }
    switch output {
    case .dataResult, .fileResult, .bytes: if metrics != nil { return false }
    case .dataHandler, .fileHandler, .delegate: break
    }
    stopClock()
    complete(failure: nil, finalMetrics)
    return true
  }

  /// Has a task carry the load on.
  func startWorker() {
    hasWorker = true
    if !slot.isInFlight {
      isStarting = true
      engine.startingCount += 1
    }
    engine.taskPool.run(self)
  }

  // MARK: - The worker

  /// Continues the load to its end or to the wait for an event, and provides what its stages need.
  @inline(__always)
  func run() async {
    hasWorker = true
    if isStarting {
      isStarting = false
      engine.startingCount -= 1
    }
    // Makes the task, if there is none: from here on the load may call its delegate.
    _ = task
    repeat {
      do throws(URLError) {
        if let loadFailure { throw loadFailure }
        while let stop = try nextStop() {
          switch stop {
          case .need(let need): try await provide(need)
          case .wait(.callback): await TaskContinuation.suspend { callbackWait = $0 }
          case .wait(.event): return hasWorker = false
          case .wait(.resumption): try await passGate()
          }
        }
        try download?.nameFile(for: output)
      } catch {
        abandonExchange()
        loadFailure = interruption ?? error
      }
    } while await isRepeated()
    stopClock()
    // A protocol's own error, unless the task has been ended before. From here on only a cancellation can change the
    // result: see `complete`.
    let ownFailure = interruption == nil ? ownFailure : nil
    let failure = loadFailure ?? cancellation
    if failure == nil { await giveFile() }
    var finalMetrics: URLSessionTaskMetrics?
    switch output {
    // Performance: one dispatch to the queue brings the last two calls.
    case .delegate, .dataHandler, .fileHandler: finalMetrics = self.finalMetrics
    case .dataResult, .fileResult, .bytes: await notifyOfMetricsBeforeResult()
    }
    if let callsIfAny, !core.isQueueStuck.load(ordering: .relaxed) { await callsIfAny.waitForPending() }
    complete(failure: ownFailure ?? failure?.failing(at: machine.request.url).from(slot.failedPeer), finalMetrics)
  }

  /// Whether the interceptors want another attempt after a failure.
  private func isRepeated() async -> Bool {
    // The engine of segments has repeated the requests already.
    guard interception != nil, download?.segments == nil, let failure = loadFailure else { return false }
    do throws(URLError) {
      guard try await retries(after: failure) else { return false }
      loadFailure = nil
      return true
    } catch {
      loadFailure = interruption ?? error
      return false
    }
  }

  private func nextStop() throws(URLError) -> Stop? {
    if let stop = loopBound.state.stop.take() { return stop }
    return try advance()
  }

  /// Runs the worker on the task of the caller that awaits the result.
  @inline(__always)
  func runForCaller() async {
    let tick = engine.loop.tickNumber
    await run()
    if engine.loop.tickNumber == tick { await Task.yield() }
  }

  func provide(_ need: Need) async throws(URLError) {
    switch need {
    case .adaptation: try await adaptRequest()
    case .decision(let response): try await askInterceptors(about: response)
    case .delay(let duration): try await waitToUpload(for: duration)
    case .uploadResource(let question): resumable?.answered(question, try await askDelegate(question))
    case .protocolLoad: try await loadByProtocol()
    case .localLoad(let url): try await loadLocally(url)
    case .segments(let segments): try await loadInSegments(segments)
    case .route(let decider, let needs): try await resolveRoute(decider, needs)
    case .cookies(let jar): try await addCookies(of: jar)
    case .bodyStream: try await askForBody()
    case .response: try await awaitResponse()
    case .chores: try await doChores()
    case .drain: try await drainResponse()
    case .redirection(let response, let next): networkLoad?.arrival?.step = try await askRedirection(response, to: next)
    case .credential(let response): networkLoad?.arrival?.step = try await askCredential(for: response)
    case .starting(let response, let length):
      try await startContent(of: response, length: length)
      enter(.delivering)
    case .owner: try await awaitOwner()
    case .storing(let storing): try await askAndStore(storing)
    case .live: try await runLive()
    }
  }

  /// Lets time pass, which counts for the load's time limits.
  ///
  /// - Parameter phase: The name of the wait for the error of a timeout.
  func wait(for delay: Duration, _ phase: String) async throws(URLError) {
    let loop = engine.loop
    let over = OneShot<Void>()
    let timer = loop.startTimer(loop.kernel.now().advanced(by: delay)) { over.set(()) }
    defer { loop.stopTimer(timer) }
    _ = try await waiting(cancellingBy: { over.cancel() }, timed: phase) { await over.get() }
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
    _ = try await waiting(cancellingBy: { question.cancel() }, { await question.get() })
  }
}

extension Load: LoopCallback, TaskPoolWork {
  func perform() {
    // A worker that does not wait for a callback is busy with something else, and asks again.
    if hasWorker { callbackWait.take()?.resume() } else if !performStages() { startWorker() }
  }
}
