import LarkspurBytes
import LarkspurEngine
import LarkspurTransport

/// The attempts of a load whose client has interceptors. `Interception` has their rules.
extension ClientLoad {
  /// Has the interceptors change the request of an attempt that begins.
  func adaptRequest() async throws(HTTPClientError) {
    guard let interception else { throw .inconsistency }
    let request = request
    interception.begin(request, redirectCount: machine.redirectCount)
    let (interceptors, number) = (interception.interceptors, interception.number)
    let answer = await askProgram {
      var request = request
      do {
        for interceptor in interceptors { request = try await interceptor.adapt(request, attempt: number) }
        return Result<HTTPClient.Request, any Error>.success(request)
      } catch {
        return .failure(error)
      }
    }
    try checkCancellation()
    switch answer {
    case .success(let request): self.request = request
    case .failure(let error): throw failing(with: error)
    }
  }

  /// Asks the interceptors about a response's head. If they want another attempt, the response is dropped.
  func askInterceptors() async throws(HTTPClientError) {
    isDecided = true
    guard let delay = try await delayOfRetry(after: nil) else { return }
    await drain()
    endAttempt()
    try await retry(after: delay)
  }

  /// Whether interceptors decide about an error of the current attempt.
  var mayRepeat: Bool { interception?.isAdapted == true && opening == nil && !isInBody }

  /// Begins another attempt after an error, if the interceptors want one, and ends the load otherwise.
  func repeatOrFail(_ error: HTTPClientError) async {
    var error = error
    endAttempt()
    do throws(HTTPClientError) {
      if !isCancelled, ownFailure == nil, engine.loop.now < deadline, let delay = try await delayOfRetry(after: error) {
        return try await retry(after: delay)
      }
    } catch let other {
      error = other
    }
    fail(error)
  }

  /// Returns the delay before another attempt, or `nil` if there is none.
  private func delayOfRetry(after error: HTTPClientError?) async throws(HTTPClientError) -> Duration? {
    guard let interception else { return nil }
    let attempt = HTTPClient.InterceptedAttempt(
      number: interception.number, request: request, statusCode: hasHead ? head.status : nil,
      fields: hasHead ? fields : [], error: error, earlierStatusCodes: interception.statusCodes,
      bytesSent: bodyBytesSent, isRepeatable: request.body.isRestartable)
    let interceptors = interception.interceptors
    let decision = await askProgram {
      for interceptor in interceptors {
        let decision = await interceptor.decide(after: attempt)
        if case .deliver = decision { continue }
        return decision
      }
      return .deliver
    }
    try checkCancellation()
    switch decision {
    case .deliver: return nil
    case .retry(let delay): return attempt.isRepeatable ? delay : nil
    case .fail(let error): throw failing(with: error)
    }
  }

  private func retry(after delay: Duration) async throws(HTTPClientError) {
    guard let interception else { throw .inconsistency }
    let loop = engine.loop
    note(.retry(after: delay))
    // The attempt is over: no interceptor is asked about an error of the wait.
    let next = interception.end(hasHead ? head.status : nil, request, redirectCount: machine.redirectCount)
    let end = min(loop.kernel.now().advanced(by: delay), deadline)
    if end > loop.now {
      let over = OneShot<Void>()
      let timer = loop.startTimer(end) { over.set(()) }
      defer { loop.stopTimer(timer) }
      await withTaskCancellationHandler {
        await over.get()
      } onCancel: {
        over.cancel()
      }
    }
    try checkCancellation()
    guard end < deadline else {
      throw HTTPClientError(.timedOut, "timed out between two attempts", url: request.url)
    }
    loadAgain(next)
  }

  private var isCancelled: Bool { slot.isCancelled || Task.isCancelled }

  private func checkCancellation() throws(HTTPClientError) {
    if isCancelled { throw HTTPClientError(.cancelled, "cancelled", url: request.url) }
  }

  /// Makes an error of the program's the load's error.
  private func failing(with error: any Error) -> HTTPClientError {
    ownFailure = error
    return HTTPClientError(.cancelled, "an interceptor has ended the request", url: request.url)
  }

  /// Runs code of the program's, which may block: not on the loop's thread, unless all interceptors are Larkspur's quick ones.
  private func askProgram<Answer: Sendable>(_ code: @escaping @Sendable () async -> Answer) async -> Answer {
    if engine.interceptsQuickly { return await code() }
    return await withTaskExecutorPreference(globalConcurrentExecutor) { await code() }
  }
}
