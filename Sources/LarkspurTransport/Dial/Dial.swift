import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// Connects to one of a host's addresses: performs the decisions of a `DialMachine`. A dial belongs to its loop's
/// thread.
final class Dial {
  private let loop: ClientLoop
  private let addresses: [SocketAddress]
  /// The local endpoint to connect from, if there is one.
  private let local: LocalEndpoint?
  private let observer: Connection.Observer?
  private var machine: DialMachine

  /// The channels of the attempts in progress, by attempt.
  private var channels: [Int: Channel] = [:]
  /// The attempts in progress whose connect has an outcome in the kernel.
  private var answered: [Int] = []
  /// The wait of the dial's task.
  private var news: LoopPromise<Void>?

  private var failures: [TransportError.Attempt] = []
  private var outcome: Result<Channel, TransportError>?

  /// Maximum number of a host's addresses that are tried. A name server may send thousands. Where there is no network,
  /// each attempt fails at once and starts the next one recursively, so the limit also bounds the stack.
  static let addressesMax = 64

  /// Creates a dial. Leaves out addresses that `local` cannot reach, and addresses beyond `addressesMax`.
  init(to all: [SocketAddress], from local: LocalEndpoint?, on loop: ClientLoop, observer: Connection.Observer?) {
    let addresses = local.map { all.filter($0.reaches) } ?? all
    let isIPv6 = addresses.map { if case .ipv6 = $0 { true } else { false } }
    let order = DialOrder.interleaved(isIPv6: isIPv6, hasFailed: addresses.map(loop.hasFailed))
    self.addresses = order.prefix(Self.addressesMax).map { addresses[$0] }
    self.local = local
    self.loop = loop
    self.observer = observer
    machine = DialMachine(count: self.addresses.count)
    if let local, addresses.isEmpty, !all.isEmpty { outcome = .failure(.localEndpointUnusable(local, nil)) }
  }

  /// Returns the channel that was connected first.
  ///
  /// - Parameter deadline: The deadline of all attempts together.
  static func connect(
    to addresses: [SocketAddress], from local: LocalEndpoint?, on loop: ClientLoop, deadline: Deadline,
    timeouts: Timeouts, observer: Connection.Observer?
  ) async throws(TransportError) -> Channel {
    guard timeouts.connect == nil else {
      var unlimited = timeouts
      unlimited.connect = nil
      return try await Connection.limited(
        by: timeouts.connect, as: .connect, in: .connecting, within: deadline, on: loop
      ) {
        (own) async throws(TransportError) in
        let channel = try await connect(
          to: addresses, from: local, on: loop, deadline: own, timeouts: unlimited, observer: observer)
        channel.setDeadline(deadline)
        return channel
      }
    }
    // Performance: a single address needs no decisions, so there is no race and no machine.
    if addresses.count == 1, local == nil {
      return try await connect(toOnly: addresses[0], on: loop, deadline: deadline, observer: observer)
    }
    return try await Dial(to: addresses, from: local, on: loop, observer: observer).connect(deadline: deadline)
  }

  private static func connect(
    toOnly address: SocketAddress, on loop: ClientLoop, deadline: Deadline, observer: Connection.Observer?
  ) async throws(TransportError) -> Channel {
    let (channel, isConnected) = try start(address, on: loop, deadline: deadline, observer: observer)
    if !isConnected {
      try await channel.cancelledWithTask { () async throws(TransportError) in
        try await finish(channel, observer: observer)
      }
    }
    return channel
  }

  /// Starts the only attempt. An error, here and in `finish`, closes the channel.
  static func start(
    _ address: SocketAddress, on loop: ClientLoop, deadline: Deadline, observer: Connection.Observer?
  ) throws(TransportError) -> (channel: Channel, isConnected: Bool) {
    observer?(.connecting(address), loop.kernel.now())
    do throws(Errno) {
      let channel = try Channel(to: address, on: loop)
      channel.setDeadline(deadline)
      do throws(Errno) {
        let isConnected = try channel.connect()
        if isConnected { succeeded(channel, observer) }
        return (channel, isConnected)
      } catch {
        channel.close()
        throw error
      }
    } catch {
      throw failed(error, address, on: loop, observer)
    }
  }

  /// Waits for the outcome of the only attempt.
  static func finish(_ channel: Channel, observer: Connection.Observer?) async throws(TransportError) {
    do throws(Channel.Interruption) {
      try await channel.wait(reading: false, writing: true)
    } catch {
      channel.close()
      switch error {
      case .timedOut: throw .timedOut(.connecting)
      case .cancelled: throw .cancelled
      case .busy: throw .internalInconsistency
      }
    }
    do throws(Errno) {
      try channel.finishConnecting()
    } catch {
      channel.close()
      throw failed(error, channel.address, on: channel.loop, observer)
    }
    succeeded(channel, observer)
  }

  private static func succeeded(_ channel: Channel, _ observer: Connection.Observer?) {
    channel.loop.connected(to: channel.address)
    observer?(.connected(channel.address), channel.loop.kernel.now())
  }

  private static func failed(
    _ error: Errno, _ address: SocketAddress, on loop: ClientLoop, _ observer: Connection.Observer?
  ) -> TransportError {
    observer?(.connectFailed(address, error), loop.kernel.now())
    if error.isShortage { return .unavailable(error) }
    loop.failedToConnect(to: address)
    return .connectFailed([TransportError.Attempt(address: address, error: error)])
  }

  private func connect(deadline: Deadline) async throws(TransportError) -> Channel {
    if outcome == nil { decide { $0.start(now: loop.now, into: &$1) } }
    while outcome == nil {
      let news = LoopPromise<Void>()
      self.news = news
      switch await news.outcome(deadline: min(machine.timer, deadline), on: loop) {
      case .fulfilled: takeAnswers()
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
      // The outcome of an earlier attempt in this list may have ended the race.
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
      let channel = try Channel(to: addresses[attempt], usingMultipath: local?.usesMultipath == true, on: loop)
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
      channel.connectAnswered = { [weak self] in
        self?.answered.append(attempt)
        self?.news?.finish(.fulfilled(()))
      }
    } catch {
      attemptFailed(attempt, error)
    }
  }

  /// - Parameter fatal: An error that each other address would fail with, too, or `nil`.
  private func attemptFailed(_ attempt: Int, _ error: Errno, fatal: TransportError? = nil) {
    let address = addresses[attempt]
    observer?(.connectFailed(address, error), loop.kernel.now())
    if let fatal = fatal ?? (error.isShortage ? .unavailable(error) : nil) {
      // Attempts in progress may still succeed.
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
}
