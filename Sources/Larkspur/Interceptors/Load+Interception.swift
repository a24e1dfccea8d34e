import Foundation
import LarkspurBytes
import LarkspurEngine

/// The attempts of a load that has interceptors.
extension Load {
  /// Whether the interceptors change the request before it is loaded. The requests to an upload resource are made by the
  /// upload.
  var mayBeAdapted: Bool {
    guard let interception, !interception.isAdapted else { return false }
    return resumable?.isAtResource != true
  }

  /// Has the interceptors change the request of an attempt that begins.
  func adaptRequest() async throws(URLError) {
    guard let interception else { throw Self.inconsistency }
    let request = machine.request
    interception.begin(request, redirectCount: machine.redirectCount)
    let (interceptors, number) = (interception.interceptors, interception.number)
    let answer = try await awaitProgram {
      var request = request
      do {
        for interceptor in interceptors { request = try await interceptor.adapt(request, attempt: number) }
        return Result<URLRequest, any Error>.success(request)
      } catch {
        return .failure(error)
      }
    }
    switch answer {
    case .success(let request):
      machine.replace(by: request)
      currentTask?.show { $0.currentRequest = request }
    case .failure(let error): throw failing(with: error)
    }
  }

  /// Asks the interceptors about a response's head. If they want another attempt, the response is dropped.
  func askInterceptors(about response: HTTPURLResponse) async throws(URLError) {
    guard let arrival = networkLoad?.arrival else { throw Self.inconsistency }
    arrival.isDecided = true
    guard let retry = try await decidedRetry(response, nil) else { return }
    if arrival.isUndrained { try await drainResponse() }
    endExchange()
    try await perform(retry)
  }

  /// Asks the interceptors about the error of an attempt, whose exchange has ended.
  ///
  /// - Returns: Whether another attempt follows.
  func retries(after error: URLError) async throws(URLError) -> Bool {
    guard interception?.isAdapted == true, interruption == nil, ownFailure == nil, live == nil,
      resumable?.decidesByItself != true
    else { return false }
    guard let retry = try await decidedRetry(content.response, error.failing(at: machine.request.url)) else {
      return false
    }
    content = TaskContent()
    currentTask?.show {
      $0.response = nil
      $0.bytesReceived = 0
    }
    try download?.repeats()
    try await perform(retry)
    return true
  }

  /// Another attempt that the interceptors have decided about.
  private struct Retry {
    let delay: Duration
    /// The status code of the attempt that is over.
    let statusCode: Int?
  }

  /// Returns the next attempt, or `nil` if there is none.
  private func decidedRetry(_ response: URLResponse?, _ error: URLError?) async throws(URLError) -> Retry? {
    guard let interception else { return nil }
    let isRepeatable = canBeRepeated
    let attempt = URLSessionAttempt(
      number: interception.number, request: machine.request, response: response, error: error,
      earlierStatusCodes: interception.statusCodes, bytesSent: currentTask?.countOfBytesSent ?? 0,
      isRepeatable: isRepeatable)
    let interceptors = interception.interceptors
    let decision = try await awaitProgram {
      for interceptor in interceptors {
        let decision = await interceptor.decide(after: attempt)
        if case .deliver = decision { continue }
        return decision
      }
      return .deliver
    }
    switch decision {
    case .deliver: return nil
    case .retry(let delay):
      return isRepeatable ? Retry(delay: delay, statusCode: attempt.statusCode) : nil
    case .fail(let error): throw failing(with: error)
    }
  }

  private func perform(_ retry: Retry) async throws(URLError) {
    guard let interception else { throw Self.inconsistency }
    note(.retry(after: retry.delay))
    try await wait(for: retry.delay, "between two attempts")
    machine.replace(
      by: interception.end(retry.statusCode, machine.request, redirectCount: machine.redirectCount))
    loadAgain()
  }

  /// Makes an error of the program's the task's error.
  private func failing(with error: any Error) -> URLError {
    ownFailure = URLError.bridged(error)
    return URLError.make(.unknown)
  }

  /// Whether the body can be sent once more, and the owner has nothing of a response.
  private var canBeRepeated: Bool {
    let isUndelivered =
      switch output {
      case .dataHandler, .dataResult: perCallDelegate == nil || content.response == nil
      case .fileHandler, .fileResult: true
      case .bytes: content.response == nil
      case .delegate: download.map { !$0.hasGivenFile } ?? (content.response == nil)
      }
    guard isUndelivered else { return false }
    switch source {
    case .request:
      if case .stream = machine.request.own.body { return uploadIfAny?.hasUnusedStream(of: machine.request) ?? true }
    case .data, .file: break
    case .delegateStream: return false
    }
    return true
  }

  /// Awaits code of the program's, whose task is cancelled with the load.
  private func awaitProgram<Answer: Sendable>(
    _ code: @escaping @Sendable () async -> Answer
  ) async throws(URLError) -> Answer {
    if isHalted { try await passGate() }
    let answer = OneShot<Answer>()
    let running = Task.detached { answer.set(await code()) }
    let value = try await waiting(
      cancellingBy: {
        running.cancel()
        answer.cancel()
      }, { await answer.get() })
    guard let value else { throw Self.inconsistency }
    return value
  }
}
