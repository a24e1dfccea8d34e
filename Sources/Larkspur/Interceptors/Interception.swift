import Foundation
import LarkspurBytes

/// The interceptors of a load, and the attempt that they see. It belongs to the loop.
final class Interception {
  let interceptors: [any URLSessionInterceptor]
  /// The number of the current attempt, counted from 1, or 0 before the first one.
  private(set) var number = 0
  /// Whether the request of the current attempt has been changed by the interceptors.
  private(set) var isAdapted = false
  /// The status codes of the responses to earlier attempts.
  private(set) var statusCodes: [Int] = []
  /// The request of the current attempt before the interceptors changed it, and the number of redirections before it.
  private var base: (request: URLRequest, redirectCount: Int)?

  init(_ interceptors: [any URLSessionInterceptor]) { self.interceptors = interceptors }

  /// The end of the current attempt by the shortest of the interceptors' limits, once a request of it has been prepared.
  private var deadline: Deadline?

  /// Returns the end of the current attempt. Its time begins with the first call.
  func deadline(from now: Deadline) -> Deadline? {
    if deadline == nil { deadline = interceptors.compactMap(\.attemptTimeout).min().map { now.advanced(by: $0) } }
    return deadline
  }

  /// Begins an attempt.
  func begin(_ request: URLRequest, redirectCount: Int) {
    number += 1
    isAdapted = true
    deadline = nil
    base = (request, redirectCount)
  }

  /// Notes the response's status code of an attempt that another one follows.
  func note(_ statusCode: Int?) { if let statusCode { statusCodes.append(statusCode) } }

  /// Ends the attempt, because another one follows.
  ///
  /// - Parameter request: The current request, which may be another one because of a redirection.
  /// - Returns: The request of the next attempt, before the interceptors change it.
  func end(_ request: URLRequest, redirectCount: Int) -> URLRequest {
    isAdapted = false
    guard let base, base.redirectCount == redirectCount else { return request }
    return base.request
  }
}

/// The attempts of a load that has interceptors.
extension Transfer {
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
    guard let arrival = load?.arrival else { throw Self.inconsistency }
    arrival.isDecided = true
    guard let delay = try await delayOfRetry(response, nil) else { return }
    if arrival.isUndrained { try await drainResponse() }
    endExchange()
    try await retry(after: delay)
  }

  /// Asks the interceptors about the error of an attempt, whose exchange has ended.
  ///
  /// - Returns: Whether another attempt follows.
  func retries(after error: URLError) async throws(URLError) -> Bool {
    guard interception?.isAdapted == true, interruption == nil, ownFailure == nil, live == nil, resumable == nil else {
      return false
    }
    guard let delay = try await delayOfRetry(content.response, error.failing(at: machine.request.url)) else {
      return false
    }
    content = TaskContent()
    currentTask?.show {
      $0.response = nil
      $0.bytesReceived = 0
    }
    try download?.repeats()
    try await retry(after: delay)
    return true
  }

  /// Returns the delay before another attempt, or `nil` if there is none.
  private func delayOfRetry(_ response: URLResponse?, _ error: URLError?) async throws(URLError) -> Duration? {
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
      guard isRepeatable else { return nil }
      interception.note(attempt.statusCode)
      return delay
    case .fail(let error): throw failing(with: error)
    }
  }

  private func retry(after delay: Duration) async throws(URLError) {
    guard let interception else { throw Self.inconsistency }
    note(.retry(after: delay))
    try await wait(for: delay, "between two attempts")
    machine.replace(by: interception.end(machine.request, redirectCount: machine.redirectCount))
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
      givingUpBy: {
        running.cancel()
        answer.giveUp()
      }, { await answer.get() })
    guard let value else { throw Self.inconsistency }
    return value
  }
}
