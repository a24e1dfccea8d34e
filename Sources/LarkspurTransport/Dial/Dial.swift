import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// Connects to one of a host's addresses: carries out what a `DialMachine` decides. It belongs to its loop's thread.
final class Dial {
  private let loop: ClientLoop
  private let addresses: [SocketAddress]
  /// This end, if it was chosen.
  private let local: LocalEndpoint?
  private let observer: Connection.Observer?
  private var machine: DialMachine

  /// The attempts that are under way.
  private var channels: [Int: Channel] = [:]
  /// Those of them that the kernel has an answer for.
  private var answered: [Int] = []
  /// What the task waits for.
  private var news: Answer<Void>?

  private var failures: [TransportError.Attempt] = []
  private var outcome: Result<Channel, TransportError>?

  /// Addresses that `local` cannot reach are left out.
  init(to all: [SocketAddress], from local: LocalEndpoint?, on loop: ClientLoop, observer: Connection.Observer?) {
    let addresses = local.map { all.filter($0.reaches) } ?? all
    let isIPv6 = addresses.map { if case .ipv6 = $0 { true } else { false } }
    let order = DialOrder.interleaved(isIPv6: isIPv6, hasFailed: addresses.map(loop.hasFailed))
    self.addresses = order.map { addresses[$0] }
    self.local = local
    self.loop = loop
    self.observer = observer
    machine = DialMachine(count: addresses.count)
    if let local, addresses.isEmpty, !all.isEmpty { outcome = .failure(.localEndpointUnusable(local, nil)) }
  }

  /// The channel that was connected first. `deadline` is for all attempts together.
  static func connect(
    to addresses: [SocketAddress], from local: LocalEndpoint?, on loop: ClientLoop, deadline: Deadline,
    observer: Connection.Observer?
  ) async throws(TransportError) -> Channel {
    // One address has no rival: there is nothing to decide, and no race to keep the books of.
    if addresses.count == 1, local == nil {
      return try await connect(toOnly: addresses[0], on: loop, deadline: deadline, observer: observer)
    }
    return try await Dial(to: addresses, from: local, on: loop, observer: observer).connect(deadline: deadline)
  }

  private static func connect(
    toOnly address: SocketAddress, on loop: ClientLoop, deadline: Deadline, observer: Connection.Observer?
  ) async throws(TransportError) -> Channel {
    observer?(.connecting(address), loop.kernel.now())
    let outcome: Result<Channel, Channel.Interruption>
    do throws(Errno) {
      outcome = try await attempt(address, on: loop, deadline: deadline)
    } catch {
      observer?(.connectFailed(address, error), loop.kernel.now())
      if resourceErrors.contains(error) { throw .unavailable(error) }
      loop.failedToConnect(to: address)
      throw .connectFailed([TransportError.Attempt(address: address, error: error)])
    }
    switch outcome {
    case .success(let channel):
      loop.connected(to: address)
      observer?(.connected(address), loop.kernel.now())
      return channel
    case .failure(.timedOut): throw .timedOut(.connecting)
    case .failure(.cancelled): throw .cancelled
    case .failure(.busy): throw .internalInconsistency
    }
  }

  private static func attempt(
    _ address: SocketAddress, on loop: ClientLoop, deadline: Deadline
  ) async throws(Errno) -> Result<Channel, Channel.Interruption> {
    let channel = try Channel(to: address, on: loop)
    channel.setDeadline(deadline)
    do throws(Errno) {
      if try channel.connect() { return .success(channel) }
      do throws(Channel.Interruption) {
        try await channel.cancelledWithTask { () async throws(Channel.Interruption) in
          try await channel.wait(reading: false, writing: true)
        }
      } catch {
        channel.close()
        return .failure(error)
      }
      try channel.finishConnecting()
      return .success(channel)
    } catch {
      channel.close()
      throw error
    }
  }

  private func connect(deadline: Deadline) async throws(TransportError) -> Channel {
    if outcome == nil { decide { $0.begin(now: loop.now, into: &$1) } }
    while outcome == nil {
      let news = Answer<Void>()
      self.news = news
      switch await news.outcome(deadline: min(machine.timer, deadline), on: loop) {
      case .answered: takeAnswers()
      case .cancelled: end(with: .cancelled)
      case .timedOut where deadline <= loop.now: end(with: .timedOut(.connecting))
      case .timedOut: decide { $0.timerFired(now: loop.now, into: &$1) }
      }
    }
    guard let outcome else { throw .internalInconsistency }
    let channel = try outcome.get()
    channel.setDeadline(deadline)
    return channel
  }

  private func takeAnswers() {
    let attempts = answered
    answered = []
    for attempt in attempts {
      // An earlier one of them may have won.
      guard let channel = channels[attempt] else { continue }
      do throws(Errno) {
        try channel.finishConnecting()
        decide { $0.attemptSucceeded(attempt, into: &$1) }
      } catch {
        forget(attempt)
        attemptFailed(attempt, error)
      }
    }
  }

  private func end(with error: TransportError) {
    decide { $0.ended(into: &$1) }
    outcome = .failure(error)
  }

  private func decide(_ fact: (inout DialMachine, inout DialMachine.Actions) -> Void) {
    var actions: DialMachine.Actions = []
    fact(&machine, &actions)
    for action in actions { perform(action) }
  }

  private func perform(_ action: DialMachine.Action) {
    switch action {
    case .start(let attempt): start(attempt)
    case .abandon(let attempt): forget(attempt)
    case .succeed(let attempt):
      guard let channel = channels.removeValue(forKey: attempt) else { return }
      channel.connectAnswered = nil
      loop.connected(to: channel.address)
      observer?(.connected(channel.address), loop.kernel.now())
      outcome = .success(channel)
    case .fail: outcome = .failure(.connectFailed(failures))
    }
  }

  private func start(_ attempt: Int) {
    observer?(.connecting(addresses[attempt]), loop.kernel.now())
    do throws(Errno) {
      let channel = try Channel(to: addresses[attempt], on: loop)
      channels[attempt] = channel
      if let local, let error = channel.bind(to: local) {
        forget(attempt)
        return attemptFailed(attempt, error, fatal: .localEndpointUnusable(local, error))
      }
      do throws(Errno) {
        if try channel.connect() {
          decide { $0.attemptSucceeded(attempt, into: &$1) }
          return
        }
      } catch {
        forget(attempt)
        throw error
      }
      channel.connectAnswered = { [unowned self] in
        answered.append(attempt)
        news?.finish(.answered(()))
      }
    } catch {
      attemptFailed(attempt, error)
    }
  }

  /// `fatal`: another address would fail in the same way.
  private func attemptFailed(_ attempt: Int, _ error: Errno, fatal: TransportError? = nil) {
    let address = addresses[attempt]
    observer?(.connectFailed(address, error), loop.kernel.now())
    if let fatal = fatal ?? (Self.resourceErrors.contains(error) ? .unavailable(error) : nil) {
      // What is under way may come to something all the same.
      if channels.isEmpty { return end(with: fatal) }
    } else {
      loop.failedToConnect(to: address)
    }
    failures.append(TransportError.Attempt(address: address, error: error))
    decide { $0.attemptFailed(attempt, now: loop.now, into: &$1) }
  }

  private func forget(_ attempt: Int) {
    guard let channel = channels.removeValue(forKey: attempt) else { return }
    channel.connectAnswered = nil
    channel.close()
  }

  /// What another address would fail with as well.
  private static let resourceErrors: Set<Errno> = [
    .tooManyDescriptors, .tooManyDescriptorsInSystem, .noMemory, .noBufferSpace,
  ]
}
