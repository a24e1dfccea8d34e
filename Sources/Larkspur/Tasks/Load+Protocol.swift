import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurTransport

extension SessionCore {
  /// Whether the configuration or the process has protocol classes.
  var mayHaveProtocols: Bool { !protocolClasses.isEmpty || !ProtocolRegistry.isEmpty }
}

/// Loading by a program's protocol.
///
/// The protocol pushes events, and the load takes them one after another. Events that a suspended task or a slow
/// delegate does not take yet wait in the protocol's client. Events that make no sense are ignored: a second response,
/// a redirection after the response or after content, anything after the end. A response that comes after content still
/// becomes the task's response.
extension Load {
  /// Finds a protocol for a request.
  ///
  /// - Returns: The load by that protocol, or `nil` if no class takes the request.
  func protocolLoad(for request: URLRequest) async throws(URLError) -> ProtocolLoad? {
    var request = request
    core.composer.complete(&request, hasLeftOrigin: machine.hasLeftOrigin)
    switch source {
    case .data(let data) where request.own.method != "GET" || machine.redirectCount == 0: request.httpBody = data
    case .file(let url) where request.own.method != "GET" || machine.redirectCount == 0:
      request.httpBodyStream = InputStream(url: url)
    case .request, .data, .file, .delegateStream: break
    }
    request.offerDataAsStream()
    let loaded = machine.request
    task.show { $0.currentRequest = request }
    let question = ProtocolLoad.find(
      among: core.protocolClasses + ProtocolRegistry.classes, for: task, request)
    var load: ProtocolLoad?
    defer { task.show { $0.currentRequest = load?.client.request ?? loaded } }
    // The methods of the protocol classes may block.
    load =
      try await waiting(cancellingBy: { question.cancel() }, timed: Self.protocolPhase, { await question.get() }) ?? nil
    return load
  }

  /// Runs a load by a protocol to its end.
  ///
  /// - Parameter turn: The turn in which the protocol starts.
  /// - Returns: `true` if the machine's next step is another request.
  func loadByProtocol(_ load: ProtocolLoad, _ turn: Int) async throws(URLError) -> Bool {
    // A suspended task delays no others.
    if isHalted { core.protocolTurns.end(turn) }
    try await passGate()
    if case .delegateStream = source, let stream = try await askForStream() {
      load.client.request.httpBodyStream = stream
    }
    let start = metrics == nil ? .distantPast : Date()
    let loadState = ProtocolLoadState(load, cache: core.cache, policy: core.policy(of: load.client.request))
    load.start(for: task, cache: loadState.readableCache, in: core.protocolTurns, turn)
    let result: Result<Bool, URLError>
    do throws(URLError) {
      result = .success(try await receiveEvents(loadState))
    } catch {
      result = .failure(error)
    }
    // Do not wait for a protocol that has not returned from `startLoading()`: it may never return.
    await load.stop(waits: load.client.hasStarted)
    metrics?.collect(without: load.client.request, loadState.response, since: start, bytes: task.countOfBytesReceived)
    return try result.get()
  }

  private func receiveEvents(_ loadState: ProtocolLoadState) async throws(URLError) -> Bool {
    while true {
      let event = try await next(of: loadState.load.client)
      progressed()
      try await passGate()
      switch event {
      case .redirected(let next, let response):
        guard loadState.response == nil, loadState.early.isEmpty else { continue }
        if try await redirect(to: next, by: response, loadState) { return true }
        if loadState.hasStarted { return false }
      case .response(let response, let policy):
        if loadState.hasContentWithoutResponse {
          try await adopt(response, loadState)
        } else if loadState.response == nil {
          loadState.mayStore(by: policy)
          try await start(response, loadState)
        }
      case .cachedResponseIsValid(let cached): loadState.validCached = cached
      case .data(let data):
        if loadState.response == nil, case .bytes = output, loadState.keepEarly(data) { continue }
        if loadState.response == nil {
          try await startWithoutResponse(loadState)
          loadState.hasContentWithoutResponse = true
        }
        try await deliver(data, loadState)
      case .challenge(let challenge): try await answer(challenge, loadState.load)
      case .finished:
        try await complete(loadState)
        return false
      case .failed(let error):
        ownFailure = URLError.bridged(error)
        throw URLError.make(.unknown)
      case .startReturned:
        loadState.hasStarted = true
        if loadState.isRefused { return false }
      }
    }
  }

  private static let protocolPhase = "while a protocol of the program was loading"

  private func next(of client: ProtocolClient) async throws(URLError) -> ProtocolClient.Event {
    while true {
      if let event = client.take() { return event }
      try await waiting(cancellingBy: { client.cancelWait() }, timed: Self.protocolPhase) { await client.wait() }
    }
  }

  // MARK: - Events

  private func start(_ response: URLResponse, _ loadState: ProtocolLoadState) async throws(URLError) {
    loadState.response = response
    try await start(response, length: response.expectedContentLength)
    try await passGate()
    for data in loadState.takeEarly() { try await deliver(data, loadState) }
  }

  /// Takes a response that comes after content. The owner is notified of the response as usual. Content that has been
  /// delivered is not delivered again, and nothing is stored, because the beginning was not collected for the cache.
  private func adopt(_ response: URLResponse, _ loadState: ProtocolLoadState) async throws(URLError) {
    loadState.hasContentWithoutResponse = false
    loadState.response = response
    show(response, length: response.expectedContentLength)
    perCallDelegate?.notify(of: response)
    if case .delegate = output { try await decideDisposition(of: response) }
    try await passGate()
  }

  /// Stands in for a missing response. Delegates and completion handlers get no response, as in Foundation. Async
  /// functions return a response that is made from the URL.
  private func startWithoutResponse(_ loadState: ProtocolLoadState) async throws(URLError) {
    let blank = loadState.blankResponse
    switch output {
    case .dataResult, .fileResult, .bytes: return try await start(blank, loadState)
    case .delegate, .dataHandler, .fileHandler: loadState.response = blank
    }
    if let download { try await openFile(of: download, for: blank) }
  }

  private func deliver(_ data: Data, _ loadState: ProtocolLoadState) async throws(URLError) {
    loadState.collect(data)
    take(data.span)
    try await handOverTaken()
  }

  /// Asks whether a redirection by a protocol is followed.
  ///
  /// - Returns: `true` if another request should be loaded, `false` if the redirecting response is the task's.
  private func redirect(
    to next: URLRequest, by response: URLResponse, _ loadState: ProtocolLoadState
  ) async throws(URLError) -> Bool {
    var step = machine.redirected(by: response as? HTTPURLResponse, to: next)
    if case .askRedirection(let response, let next) = step {
      step = try await askRedirection(response, to: next)
    }
    switch step {
    case .load:
      loadState.response = response
      authentication = nil
      return true
    case .fail(let error): throw error
    case .deliver, .askRedirection, .askCredential:
      loadState.isRefused = true
      try await start(response, loadState)
      return false
    }
  }

  private func complete(_ loadState: ProtocolLoadState) async throws(URLError) {
    if loadState.response == nil {
      if let cached = loadState.validCached {
        try await start(cached.response, loadState)
        try await deliver(cached.data, loadState)
      } else {
        try await startWithoutResponse(loadState)
      }
    }
    guard task is URLSessionDataTask, let (proposed, cache) = loadState.proposal,
      let stored = try await askWhetherToStore(proposed, unasked: proposed)
    else { return }
    await ProtocolLoad.store(stored, for: loadState.request, in: cache)
  }

  /// Asks the delegate whether a response is stored.
  ///
  /// - Parameter unasked: The response that is stored if no delegate implements the method.
  /// - Returns: The response to store, or `nil` if no response is stored.
  func askWhetherToStore(
    _ proposed: CachedURLResponse, unasked: CachedURLResponse?
  ) async throws(URLError) -> CachedURLResponse? {
    guard case .delegate = output, let dataTask = task as? URLSessionDataTask, needsCall(.cachedResponse) else {
      return unasked
    }
    let none = StoringDecision(cached: unasked, isOfDelegate: false)
    let isCalled = OneShot<Bool>()
    let decision = try await askDelegate(otherwise: none) { session, delegate, answer in
      isCalled.set(true)
      guard let delegate = delegate as? any URLSessionDataDelegate else { return false }
      delegate.urlSession(session, dataTask: dataTask, willCacheResponse: proposed) {
        answer(StoringDecision(cached: $0 is PassedOnResponse ? unasked : $0, isOfDelegate: true))
      }
      return true
    }
    if !decision.isOfDelegate, isCalled.value == true, task.read({ $0.delegate == nil }) {
      core.delegateDoesNotDecideStoring()
    }
    return decision.cached
  }

  private struct StoringDecision: Sendable {
    var cached: CachedURLResponse?
    var isOfDelegate: Bool
  }

  // MARK: - Challenges

  private func answer(_ challenge: URLAuthenticationChallenge, _ load: ProtocolLoad) async throws(URLError) {
    guard !load.client.isWithdrawn(challenge) else { return }
    let task = task
    let asked = OneShot<OneShot<SessionCredentials.Reply>>()
    pauseClock()
    await notifyDelegate { session, delegate in
      let question = OneShot<SessionCredentials.Reply>()
      let hasMethod = challenge.methodProbe.isImplemented(by: delegate) {
        delegate.urlSession(session, task: task, didReceive: challenge) { question.set(.init($0, $1)) }
        return true
      }
      if hasMethod { asked.set(question) }
      return hasMethod
    }
    resumeClock()
    var reply: SessionCredentials.Reply? = .performDefaultHandling
    if let question = asked.value {
      guard load.client.open(challenge, withdrawingBy: { question.cancel() }) else { return }
      reply = try await waiting(cancellingBy: { question.cancel() }, { await question.get() })
      guard load.client.settle(challenge) else { return }
    } else if load.client.isWithdrawn(challenge) {
      return
    }
    guard let reply, let sender = challenge.sender else { return }
    load.call {
      switch reply {
      case .useCredential(let credential?): sender.use(credential, for: challenge)
      case .useCredential(nil): sender.continueWithoutCredential(for: challenge)
      case .performDefaultHandling: sender.performDefaultHandling(for: challenge)
      case .rejectProtectionSpace: sender.rejectProtectionSpaceAndContinue(with: challenge)
      case .cancel: sender.cancel(challenge)
      }
    }
    if case .cancel = reply { throw URLError.make(.cancelled, "cancelled") }
  }
}
