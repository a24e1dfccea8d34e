import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The stages from a response's head to the load's next step.
extension Load {
  /// Reads a response's head: its coding, its cookies, the cache's decision, and the next step.
  func classify() throws(URLError) -> Stop? {
    guard let load = networkLoad, let exchange = running?.exchange, let url = load.request.url else {
      throw Self.inconsistency
    }
    let request = load.request
    var caching = load.caching
    if caching == nil, let cache, !request.isSafe || mayBeStored(exchange) || decidesStoring(in: cache) {
      caching = core.lateExchange(for: request, load.additions, sent: load.sendDate)
    }
    let head = exchange.head
    let fields = ResponseFields.wire(bytes: exchange.headBytes, table: head.fields)
    // Performance: one look for both fields, which most small responses do not have.
    let isSpecial = fields.mayContain(KnownField.contentEncoding, KnownField.setCookie)
    let decoder = isSpecial ? try ContentDecoding.decoder(for: head, fields, of: request) : nil
    let response = HTTPURLResponse(
      url: live == nil ? url : url.ofWebSocket, statusCode: head.status, httpVersion: exchange.version, fields: fields,
      isDecoded: decoder != nil)
    let arrival = Arrival(response, .network(exchange, decoder), .deliver(response))
    if isSpecial, fields.contains(KnownField.setCookie) {
      if core.cookieStorage?.isSubclass == true {
        arrival.chores.append(.keepCookies)
      } else {
        core.keepCookies(of: response, request)
      }
    }
    if let authentication { arrival.chores += authentication.accepted(by: response).map { .call($0) } }
    switch cacheVerdict(on: response, caching) {
    case .deliver: arrival.step = step(after: response)
    case .deliverAndStore(let storing):
      note(.cache(.storing))
      arrival.storing = storing
      arrival.step = step(after: response)
    case .useStored(let answer):
      note(.cache(.storedUsed))
      arrival.stored = answer
    case .reload: arrival.step = .load
    }
    load.arrival = arrival
    enter(.classified)
    return nil
  }

  /// The redirections of an upload resource concern the upload, and not the task's request.
  private func step(after response: HTTPURLResponse) -> TaskMachine.Step {
    machine.responseReceived(response, followsRedirections: resumable?.isAtResource != true)
  }

  func doChores() async throws(URLError) {
    guard let load = networkLoad, let arrival = load.arrival else { throw Self.inconsistency }
    let chores = arrival.chores
    arrival.chores = []
    for chore in chores {
      switch chore {
      case .keepCookies: try await keepCookies(of: arrival.response, load.request)
      case .call(let call): try await doElsewhere(call)
      }
    }
  }

  /// Handles the response by its class: delivers the response, or drops it for a stored one or for another request.
  func settle() throws(URLError) -> Stop? {
    guard let load = networkLoad, let arrival = load.arrival else { throw Self.inconsistency }
    if !arrival.chores.isEmpty { return .need(.chores) }
    if let stored = arrival.stored {
      if arrival.isUndrained { return .need(.drain) }
      endExchange()
      use(stored, for: load)
      return nil
    }
    switch arrival.step {
    case .load:
      if arrival.isUndrained { return .need(.drain) }
      endExchange()
      loadAgain()
      return isHalted ? .wait(.resumption) : nil
    case .askRedirection(let response, let next):
      arrival.storingRedirection = arrival.storing
      return .need(.redirection(response, next))
    case .askCredential(let response): return .need(.credential(response))
    case .deliver(let response):
      if interception != nil, live == nil, resumable?.decidesByItself != true, !arrival.isDecided {
        return .need(.decision(response))
      }
      if let live {
        show(response, length: 0)
        try live.admit(response)
        enter(.delivering)
        return nil
      }
      if let download, try !download.admits(response) {
        arrival.step = .load
        return nil
      }
      switch try resumable?.outcome(of: response, to: load.request) {
      case .deliver?, nil: break
      case .another?:
        arrival.step = .load
        return nil
      case .ask(let question)?: return .need(.uploadResource(question))
      }
      if let storing = arrival.storing { content.keepsCopy(upTo: storing.bodyBytesMax, for: output) }
      let length = arrival.contentLength
      guard begins(response, length: length) else { return .need(.starting(response, length: length)) }
      enter(.delivering)
      return nil
    case .fail(let error): throw error
    }
  }

  /// Asks whether a redirection is followed.
  func askRedirection(
    _ response: HTTPURLResponse, to next: URLRequest
  ) async throws(URLError) -> TaskMachine.Step {
    let step = machine.redirectionAnswered(try await askDelegate(toFollow: response, to: next))
    // The credentials were for the request before.
    authentication = nil
    return step
  }

  /// Asks for credentials that a response demands.
  func askCredential(for response: HTTPURLResponse) async throws(URLError) -> TaskMachine.Step {
    guard let load = networkLoad else { throw Self.inconsistency }
    let (task, authentication) = (task, authentication ?? TaskAuthentication(core, source))
    self.authentication = authentication
    var step = authentication.challenged(by: response, to: load, resumable, of: task)
    while case .ask(let question) = step {
      let challenge = question.challenge(response: response)
      let reply = try await askDelegate(otherwise: SessionCredentials.Reply.performDefaultHandling) {
        session, delegate, answer in
        challenge.methodProbe.isImplemented(by: delegate) {
          delegate.urlSession(session, task: task.owner, didReceive: challenge) { answer(.init($0, $1)) }
          return true
        }
      }
      step = authentication.replied(reply, to: response)
    }
    switch step {
    case .send: return machine.credentialGiven()
    case .cancel: throw URLError.make(.cancelled, "cancelled")
    case .ask, .deliver, .nothing, nil: return machine.credentialRefused()
    }
  }

  /// Uses a stored response like a response of the server.
  func use(_ answer: CacheAnswer, for load: NetworkLoad) {
    if answer.refresh != nil { refresh(load.request) }
    var step = machine.responseReceived(answer.response)
    // A stored response asks for no credentials.
    if case .askCredential = step { step = machine.credentialRefused() }
    load.arrival = Arrival(
      answer.response, .cache(answer.data), step, found: metrics == nil ? nil : Date())
    enter(.classified)
  }

  /// Loads the machine's request next.
  func loadAgain() {
    let (request, hasLeftOrigin) = (machine.request, machine.hasLeftOrigin)
    currentTask?.show {
      $0.currentRequest = request
      $0.hasLeftOrigin = hasLeftOrigin
    }
    networkLoad = nil
    enter(.requested)
  }

  /// Gives the connection back. The exchange's metrics are complete then.
  func endExchange() {
    guard let running = running.take() else { return }
    running.end()
    if let networkLoad { collectMetrics(of: networkLoad) }
  }

  // MARK: - Drain

  func drainResponse() async throws(URLError) {
    guard let load = networkLoad, let arrival = load.arrival, case .network(let exchange, let decoder) = arrival.content
    else {
      throw Self.inconsistency
    }
    arrival.isDrained = true
    if arrival.stored == nil, let storing = arrival.storingRedirection {
      try await storeRedirection(storing, from: exchange, decoder)
    } else {
      var nothing: Data?
      _ = try await drain(exchange, keeping: &nothing)
    }
  }

  /// Reads the rest of an unwanted response, if there is little of it. Keeps it if `kept` is not `nil`.
  ///
  /// - Returns: Whether that was all.
  func drain(_ exchange: Exchange, keeping kept: inout Data?) async throws(URLError) -> Bool {
    do throws(TransportError) {
      return try await exchange.drain(on: engine.loop) { piece in
        kept?.append(copying: piece)
        progressed()
      }
    } catch {
      if interruption != nil { throw URLError(error, url: machine.request.url) }
      // The connection is gone, and that is all.
      return false
    }
  }
}
