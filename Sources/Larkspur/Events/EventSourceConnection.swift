import Foundation
import LarkspurBytes
import LarkspurHTTP

/// Carries out the decisions of an event source's machine, for one reader. One task at a time uses it.
///
/// A connection is an `EventReader`: the connection closes when its reader is released.
final class EventSourceConnection {
  private typealias Action = EventSourceMachine.Action

  private let source: URLSessionEventSource
  /// The number of the reader, or `nil` before its first event.
  private var number: Int?
  private var isOver = false
  private var reader: EventReader?
  /// The latest response and error, for the error that ends the source.
  private var response: URLResponse?
  private var error: (any Error)?

  init(_ source: URLSessionEventSource) { self.source = source }

  deinit {
    if let number { source.leave(number) }
  }

  private var configuration: URLSessionEventSource.Configuration { source.configuration }

  /// Returns the next event, over as many connections as that takes.
  func next(isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
    guard !isOver else { return nil }
    let number = number ?? source.takeOver()
    self.number = number
    // An error or the end is the last result.
    isOver = true
    var action = source.report(number) { $0.start() }
    while true {
      switch action {
      case .connect(let lastEventID): action = await connect(number, lastEventID, isolation: actor)
      case .read:
        do {
          if let event = try await read(number, isolation: actor) {
            isOver = false
            return event
          }
          action = ended(number)
        } catch {
          action = failed(number, error)
        }
      case .wait(let delay): action = await wait(number, delay, isolation: actor)
      case .finish:
        reader = nil
        // The reader was cancelled, and the source has not ended.
        if Task.isCancelled, source.readyState != .closed { throw URLError.make(.cancelled, url: source.request.url) }
        return nil
      case .fail(let failure):
        reader = nil
        throw error(for: failure)
      }
    }
  }

  // MARK: - Actions

  private func connect(
    _ number: Int, _ lastEventID: String, isolation actor: isolated (any Actor)?
  ) async -> Action {
    reader = nil
    response = nil
    error = nil
    let request: URLRequest
    do {
      request = try await prepared(number, fields(lastEventID), isolation: actor)
    } catch {
      return gaveUp(number, error)
    }
    // A cancelled reader makes no connection.
    if Task.isCancelled { return left(number) }
    // The head has the request's timeout, and the stream has its own.
    let idleTime = configuration.idleTimeout?.wholeNanoseconds ?? .max
    let bytes = source.session.unstartedBytes(for: request, idleTime: idleTime)
    let task = bytes.task
    source.setInterrupt(number) { task.cancel() }
    do {
      let response = try await bytes.response()
      if Task.isCancelled { return left(number) }
      self.response = response
      let parser = EventStreamParser(limits: configuration.limits, lastEventID: lastEventID)
      reader = EventReader(bytes.makeAsyncIterator().reader, parser)
      return responded(number, response)
    } catch {
      return failed(number, error)
    }
  }

  private func read(_ number: Int, isolation actor: isolated (any Actor)?) async throws -> ServerSentEvent? {
    guard let reader, let event = try await reader.next(isolation: actor) else { return nil }
    // A cancelled reader does not get the event, although it has arrived. The next reader resumes before it.
    try Task.checkCancellation()
    let action = source.report(number) { machine in
      machine.received(
        lastEventID: reader.parser.lastEventID,
        reconnectionMilliseconds: reader.parser.reconnectionMilliseconds)
    }
    // An event that was read while the source was closed is not delivered.
    return action == .read ? event : nil
  }

  private func wait(_ number: Int, _ delay: Duration, isolation actor: isolated (any Actor)?) async -> Action {
    reader = nil
    if let report = configuration.tryFailed {
      let status = (response as? HTTPURLResponse)?.statusCode ?? 200
      if let error = error ?? (status == 200 ? nil : self.error(for: .status(status))) { report(error, delay) }
    }
    let wait = configuration.wait
    do {
      try await interruptible(number, isolation: actor) { try await wait(delay) }
    } catch {
      return gaveUp(number, error)
    }
    return Task.isCancelled ? left(number) : source.report(number) { $0.waited() }
  }

  // MARK: - Facts

  private func responded(_ number: Int, _ response: URLResponse) -> Action {
    let head = response as? HTTPURLResponse
    // Responses of other protocols, such as a program's `URLProtocol`, have no status.
    let status = head?.statusCode ?? 200
    let retryAfter = head?.value(forHTTPHeaderField: "Retry-After").flatMap {
      RetryAfter.seconds($0, now: Date().timeIntervalSince1970)
    }
    let isEventStream = response.mimeType?.lowercased() == "text/event-stream"
    let fraction = configuration.random()
    return source.report(number) {
      $0.responded(status: status, isEventStream: isEventStream, retryAfter: retryAfter, fraction: fraction)
    }
  }

  private func ended(_ number: Int) -> Action {
    let (parser, fraction) = (reader?.parser, configuration.random())
    return source.report(number) { machine in
      machine.ended(
        lastEventID: parser?.lastEventID ?? machine.lastEventID,
        reconnectionMilliseconds: parser?.reconnectionMilliseconds, fraction: fraction)
    }
  }

  private func failed(_ number: Int, _ error: any Error) -> Action {
    if Task.isCancelled { return left(number) }
    self.error = error
    let (parser, fraction) = (reader?.parser, configuration.random())
    return source.report(number) { machine in
      machine.failed(
        isFutile: Self.isFutile(error), lastEventID: parser?.lastEventID ?? machine.lastEventID,
        reconnectionMilliseconds: parser?.reconnectionMilliseconds, fraction: fraction)
    }
  }

  /// Code of the program has failed.
  private func gaveUp(_ number: Int, _ error: any Error) -> Action {
    if Task.isCancelled { return left(number) }
    self.error = error
    return source.report(number) { $0.gaveUp() }
  }

  /// The reader's task has been cancelled.
  private func left(_ number: Int) -> Action {
    source.leave(number)
    return .finish
  }

  // MARK: - Requests

  /// Returns the request with the fields of the standard (section 9.2.2, the constructor; section 9.2.4).
  private func fields(_ lastEventID: String) -> URLRequest {
    var request = source.request
    if request.value(forHTTPHeaderField: "Accept") == nil {
      request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    }
    if request.value(forHTTPHeaderField: "Cache-Control") == nil {
      request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
    }
    request.cachePolicy = .reloadIgnoringLocalCacheData
    // RFC 9110 5.5: white space around a value does not belong to it, and a control character cannot be sent. With such
    // an ID the source starts over, without one, in place of failing for good.
    let id = lastEventID.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
    if !id.isEmpty, !id.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f }) {
      request.setValue(id, forHTTPHeaderField: "Last-Event-ID")
    }
    return request
  }

  private func prepared(
    _ number: Int, _ request: URLRequest, isolation actor: isolated (any Actor)?
  ) async throws -> URLRequest {
    guard let prepare = configuration.prepare else { return request }
    return try await interruptible(number, isolation: actor) {
      var request = request
      try await prepare(&request)
      return request
    }
  }

  /// Runs code of the program in a task that the source and the reader can cancel.
  private func interruptible<T: Sendable>(
    _ number: Int, isolation actor: isolated (any Actor)?, _ body: @escaping @Sendable () async throws -> T
  ) async throws -> T {
    let task = Task { try await body() }
    source.setInterrupt(number) { task.cancel() }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  // MARK: - Errors

  private func error(for failure: EventSourceMachine.Failure) -> any Error {
    switch failure {
    case .connection: return error ?? URLError.make(.unknown, url: source.request.url)
    case .ended:
      return URLError.make(
        .networkConnectionLost, "the event stream has ended too often without an event", url: source.request.url)
    case .status(let status): return badResponse("the response to the event source has status \(status)")
    case .contentType:
      return badResponse(
        "the response to the event source has type \(response?.mimeType ?? "unknown"), not text/event-stream")
    }
  }

  private func badResponse(_ message: String) -> URLError {
    var more: [String: Any] = [:]
    if let response { more[URLError.failingResponseKey] = response }
    return URLError.make(.badServerResponse, message, url: response?.url ?? source.request.url, more: more)
  }

  /// Whether another try would fail with this error, too: the request, the server's certificate or the stream itself is
  /// the cause. The standard leaves this to the client.
  private static func isFutile(_ error: any Error) -> Bool {
    guard let error = error as? URLError else { return true }
    switch error.code {
    case .cancelled, .badURL, .unsupportedURL, .dataLengthExceedsMaximum, .httpTooManyRedirects,
      .redirectToNonExistentLocation, .userCancelledAuthentication, .userAuthenticationRequired,
      .serverCertificateHasBadDate, .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
      .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
      .requestBodyStreamExhausted, .fileDoesNotExist, .noPermissionsToReadFile, .cannotOpenFile,
      .appTransportSecurityRequiresSecureConnection:
      return true
    default: return false
    }
  }
}
