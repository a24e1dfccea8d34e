import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// Reports facts to the `ExchangeMachine` and performs its actions.
extension ConnectionCore {
  mutating func decide(_ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void) {
    var actions = ExchangeMachine.Actions()
    fact(&machine, &actions)
    if let action = actions.first { perform(action) }
    if let action = actions.second { perform(action) }
  }

  /// Reports a fact that ends the exchange, and returns the error that it ended with.
  mutating func fail(
    _ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void
  ) -> TransportError {
    decide(fact)
    return failure ?? .connectionClosed
  }

  mutating func perform(_ action: ExchangeMachine.Action) {
    switch action {
    case .complete:
      if isTimed { channel?.setWakeUpTime(.never) }
      note(.completed)
    case .handOver:
      // The timeouts of the exchange's parts do not apply to the other protocol.
      if isTimed {
        channel?.setWakeUpTime(.never)
        channel?.setDeadline(pace.total)
      }
      note(.handedOver)
    case .stopSending:
      stopSending()
      layers.stopSending()
    case .fail(let reason):
      let error = transportError(reason)
      failure = error
      note(.failed(error))
    case .close(let reason):
      stopSending()
      releaseInput()
      if let channel {
        layers.close(over: channel, inOrder: reason != .exchangeFailed && reason != .requestUnfinished)
      }
      channel?.close()
      channel = nil
      note(.closed(reason))
    }
  }

  func transportError(_ failure: ExchangeMachine.Failure) -> TransportError {
    switch failure {
    case .response(let error): .badResponse(error)
    case .connectionLost:
      switch lastFailure {
      case .tls(let error)?: .tls(error)
      case .kernel(let error)?: .connectionLost(phase, error)
      case nil: .connectionLost(phase, nil)
      }
    case .internalInconsistency: .internalInconsistency
    case .timedOut: .timedOut(phase, limit: isTimed ? pace.limit : .total)
    case .bodyFailed: bodyFailure.map { .bodyFailed($0) } ?? .internalInconsistency
    case .cancelled: .cancelled
    }
  }

  @inline(__always)
  mutating func note(_ event: ConnectionEvent) {
    if isObserved { events.append((event, loop.kernel.now())) }
  }
}
