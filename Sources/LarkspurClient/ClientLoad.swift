import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// One load of a client: the state of its stages, from the call to the end of its response's body.
///
/// The stages run in callbacks of the loop while the caller's task is suspended (`reachOwner`). What a stage needs and a
/// callback cannot bring is awaited by the caller's task, on the loop (`provide`).
///
/// Threads. `cancel` may be called from any thread. Everything else belongs to the loop while the caller's task is
/// suspended, and to that task in between: no stage runs while the caller's code does, so that the bytes which are there
/// are taken without a change of the thread.
final class ClientLoad: @unchecked Sendable {
  /// Why the stages have stopped.
  enum Stop {
    case need(Need)
    /// A callback, which has been subscribed, comes first.
    case callback
    /// The caller gets the response, or bytes of its body.
    case owner
  }

  /// What the caller's task provides before a stage can run.
  enum Need {
    /// The changes of the client's interceptors to the request.
    case adaptation
    /// The decision of the client's interceptors about the response.
    case decision
    /// The decision of the client's interceptors about an attempt that has failed.
    case decisionAfter(HTTPClientError)
    case route
    /// A connection, and the head of the response.
    case response
    /// The program's answer to a challenge.
    case credential(ClientCredentials.Question)
    /// The rest of a response that is dropped.
    case drain
  }

  typealias Failure = HTTPClientError

  /// The client, which keeps its connections as long as a load runs.
  private let client: HTTPClient
  let engine: ClientEngine
  /// The current request: after a redirection, the next one.
  var request: HTTPClient.Request
  var stage = LoadStage.created
  /// The WebSocket that the load opens, or `nil` for a request.
  let opening: ClientWebSocket?
  let slot: RequestSlot
  var machine: LoadMachine
  var startedAt = Deadline.never
  var deadline = Deadline.never
  /// `nil` if the client has no interceptors.
  let interception: Interception<any HTTPClient.Interceptor, HTTPClient.Request>?
  /// The number of bytes of the current attempt's body that were sent. Counted for interceptors only.
  var bodyBytesSent = 0
  /// Whether the interceptors have decided that the response is delivered.
  var isDecided = false
  /// The error of an interceptor, which becomes the load's error as it is.
  var ownFailure: (any Error)?

  // The current request's parts, in the order of their preparation.
  var target: LoadTarget?
  var route: ClientRoute?
  var poolRequest: PoolRequest?
  var running: RunningExchange?
  /// The challenges of the current request's origin and proxy.
  ///
  /// Performance: a separate object, created for the first challenge or credential.
  var authentication: ClientAuthentication?
  var isDrained = false
  var step = LoadMachine.Step.load
  /// The request that a redirection leads to.
  var redirection: (request: HTTPClient.Request, isElsewhere: Bool)?

  // The response.
  var head = ResponseHead()
  /// Whether `head` is the response to the current request.
  var hasHead = false
  /// The number of bytes of the response's body, decoded.
  var contentBytes = 0
  var headBytes: [UInt8] = []
  var fieldsRead: FieldList?
  var trailers: FieldList = []
  var decoder: ContentDecoding?
  /// The bytes of the body that the caller has not taken.
  var buffer: [UInt8] = []
  /// The error that follows the buffered bytes.
  private var bodyFailure: HTTPClientError?
  /// The error of a load without a response.
  private var failure: HTTPClientError?
  /// Whether the caller waits for bytes of the body, and not for the response.
  var awaitsBytes = false
  /// What the caller's task has to provide.
  private var need: Need?
  /// The caller's task while it is suspended.
  private var continuation: TaskContinuation?
  /// Whether the caller's closure has ended.
  private var isOver = false

  /// The number of buffered bytes from which no more are taken.
  static let bufferBytesMax = 64 * 1024

  init(
    _ request: HTTPClient.Request, of client: HTTPClient, _ engine: ClientEngine, opening: ClientWebSocket? = nil
  ) {
    self.request = request
    self.opening = opening
    self.client = client
    self.engine = engine
    machine = LoadMachine(redirectsMax: engine.options.redirectsMax)
    slot = RequestSlot(of: engine.pool, collectsMetrics: request.recorder != nil)
    let interceptors = engine.options.interceptors
    interception =
      interceptors.isEmpty ? nil : Interception(interceptors, timeouts: interceptors.compactMap(\.attemptTimeout))
  }

  func cancel() { slot.cancel() }

  /// The fields of the response's head. Performance: made when they are first read.
  var fields: FieldList {
    if let fieldsRead { return fieldsRead }
    let fields = FieldList(head.fields, in: headBytes)
    fieldsRead = fields
    return fields
  }

  // MARK: - The caller's side

  /// Runs the load up to the head of the response that is delivered, and takes the part of the body that is there.
  func run() async throws {
    // A cancellation reaches the slot by the loop's inbox, which this call may have overtaken.
    guard !Task.isCancelled else { throw HTTPClientError(.cancelled, "cancelled", url: request.url) }
    await reachOwner()
    if let failure { throw ownFailure ?? failure }
  }

  /// Returns the next bytes of the body, or `nil` at its end.
  func next() async throws(HTTPClientError) -> [UInt8]? {
    guard !isOver else {
      throw HTTPClientError(.bodyOver, "the body was read after the end of its closure", url: request.url)
    }
    if buffer.isEmpty, bodyFailure == nil, stage != .complete {
      awaitsBytes = true
      await reachOwner()
    }
    guard !buffer.isEmpty else {
      if let bodyFailure { throw bodyFailure }
      return nil
    }
    var bytes: [UInt8] = []
    swap(&bytes, &buffer)
    return bytes
  }

  /// Runs the stages until the caller gets something, or the load is complete.
  private func reachOwner() async {
    while true {
      let isOnLoop = engine.loop.isCurrent
      if !isOnLoop || !performStages() {
        await TaskContinuation.suspend {
          continuation = $0
          if !isOnLoop { engine.loop.submit(self, inline: true) }
        }
      }
      guard need != nil else { return }
      await engine.loop.run { [self] in
        while let need = need.take() {
          do throws(HTTPClientError) {
            try await provide(need)
          } catch {
            attemptFailed(error)
          }
        }
      }
      if stage == .complete { return }
    }
  }

  /// Ends the load after the caller's closure. The connection serves the next request if the body was read to its end,
  /// or little of it is left; otherwise it is closed.
  ///
  /// - Parameter mayDrain: Whether this may wait a moment for the rest of the body.
  func finish(mayDrain: Bool) async {
    isOver = true
    buffer = []
    guard stage != .complete else { return }
    await engine.loop.run { [self] in
      if mayDrain, let exchange = running?.exchange, (exchange.contentLength ?? 0) <= Exchange.drainBytesMax {
        _ = try? await exchange.drain(on: engine.loop)
      }
      endExchange()
      enter(.complete)
      note(.ended(error: nil))
    }
  }

  // MARK: - On the loop

  /// Runs the stages as far as they go.
  ///
  /// - Returns: `false` if a callback comes first, and then calls `perform`.
  private func performStages() -> Bool {
    do throws(HTTPClientError) {
      switch try advance() {
      case .callback?: return false
      case .need(let need)?: self.need = need
      case .owner?, nil: break
      }
    } catch {
      attemptFailed(error)
    }
    return true
  }

  var isInBody: Bool { stage == .delivering || stage == .delivered }

  /// Ends the exchange of an attempt, or the wait for one.
  func endAttempt() {
    if running == nil { slot.withdraw() }
    endExchange()
  }

  /// Loads a request anew, after an attempt that is over.
  func loadAgain(_ next: HTTPClient.Request) {
    request = next
    authentication = nil
    enter(.requested)
  }

  /// Ends the load with an error, unless interceptors decide about it first.
  private func attemptFailed(_ error: HTTPClientError) {
    if mayRepeat { need = .decisionAfter(error) } else { fail(error) }
  }

  /// Ends the load with an error. The reader of a body gets the bytes before it first.
  func fail(_ error: HTTPClientError) {
    let isOfBody = isInBody
    endAttempt()
    enter(.complete)
    let error = slot.isCancelled ? HTTPClientError(.cancelled, "cancelled", url: request.url) : error
    // Without the URL, which may have secrets: events and recordings redact it where it stands.
    note(.ended(error: error.reason))
    if isOfBody { bodyFailure = error } else { failure = error }
  }

  private func provide(_ need: Need) async throws(HTTPClientError) {
    switch need {
    case .adaptation: try await adaptRequest()
    case .decision: try await askInterceptors()
    case .decisionAfter(let error): await repeatOrFail(error)
    case .route: try await makeRoute()
    case .response: try await awaitResponse()
    case .credential(let question): await askCredential(question)
    case .drain: await drain()
    }
  }

  /// Receives the rest of a response that is dropped. If the connection breaks, the next request gets another
  /// connection.
  func drain() async {
    isDrained = true
    if let exchange = running?.exchange { _ = try? await exchange.drain(on: engine.loop) }
  }

  @inline(__always)
  func note(_ kind: @autoclosure () -> HTTPEvent.Kind) {
    if let observer = engine.observer {
      observer.observe(HTTPEvent(kind(), task: slot.task, at: engine.loop.kernel.now()))
    }
  }

  func failure(_ error: TransportError) -> HTTPClientError { HTTPClientError(error, url: request.url) }

  func endExchange() {
    decoder = nil
    running.take()?.end()
    record()
  }

  /// Records the attempts of the current request, which are over.
  private func record() {
    guard let recorder = request.recorder else { return }
    let tries = slot.takeMetrics()
    recorder.add(
      tries.indices.map { index in
        let isLast = hasHead && index == tries.count - 1
        return HTTPClient.Attempt(
          tries[index], of: request, status: isLast ? head.status : nil,
          contentBytes: isLast ? contentBytes : 0, since: startedAt)
      })
  }
}

extension ClientLoad: LoopCallback, LoopCompletion {
  func perform() { if performStages() { engine.loop.completeAfterTick(self) } }

  /// Resumes the caller, which may submit its next request to the loop at once.
  func complete() { continuation.take()?.resume() }
}
