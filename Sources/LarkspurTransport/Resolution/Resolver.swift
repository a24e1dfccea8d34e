import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Finds the addresses of hosts, for any number of loops: performs the decisions of a `NameMachine`.
///
/// A resolver tries the overrides first, then IP addresses (which are not looked up), then `localhost`, then the
/// source.
///
/// There is one lock, and no other code is called while it is held. One thread at a time performs the machine's
/// actions, in their order. Other threads add their actions and return: the performing thread performs these as well. A
/// look-up is therefore never cancelled before it is started, and a source that answers at once does not cause nested
/// calls.
public final class Resolver: Sendable {
  /// The resolver for the system's names, which the whole process shares.
  public static let shared = Resolver()

  private typealias Machine = NameMachine<[SocketAddress]>
  private typealias Wait = LoopPromise<Reply>

  private enum Reply: Sendable {
    case answer(NameAnswer<[SocketAddress]>)
    case refused
  }

  private struct State {
    var machine: Machine
    var waits: [Machine.WaiterID: Wait] = [:]
    var waitersSeen: Machine.WaiterID = 0
    /// The actions that have been decided and not performed.
    var actions: Machine.Actions = []
    var isPerforming = false
  }

  /// An action with everything that is needed to perform it.
  private enum Step {
    case start(NameQuestion)
    case cancel(NameQuestion)
    case reply(Wait, Reply)
  }

  private let state: Mutex<State>
  private let source: any NameSource
  private let overrides: HostOverrides
  /// The only kind of addresses to return, or `nil` for all.
  private let family: SocketAddress.Family?
  /// Provides the clock and the network interfaces.
  private let kernel: any Kernel

  public init(
    source: any NameSource, overrides: HostOverrides = HostOverrides(), limits: NameLimits = NameLimits(),
    family: SocketAddress.Family? = nil, kernel: any Kernel = LinuxKernel.shared
  ) {
    self.source = source
    self.overrides = overrides
    self.family = family
    self.kernel = kernel
    state = Mutex(State(machine: Machine(limits: limits)))
  }

  /// Creates a resolver for the system's names.
  public convenience init(
    overrides: HostOverrides = HostOverrides(), limits: NameLimits = NameLimits(), family: SocketAddress.Family? = nil
  ) {
    self.init(source: SystemNames(), overrides: overrides, limits: limits, family: family)
  }

  /// Returns the addresses of `host` in the order in which to try them. Call it on the loop.
  ///
  /// - Parameter host: A name, or an IP address without brackets.
  public func addresses(
    of host: String, port: UInt16, deadline: Deadline, on loop: ClientLoop
  ) async throws(TransportError) -> [SocketAddress] {
    let all = try await allAddresses(of: host, port: port, deadline: deadline, on: loop)
    guard let family else { return all }
    let addresses = all.filter { $0.family == family }
    guard !addresses.isEmpty else {
      throw .resolutionFailed(host: host, reason: "it has no \(family == .ipv4 ? "IPv4" : "IPv6") address")
    }
    return addresses
  }

  private func allAddresses(
    of host: String, port: UInt16, deadline: Deadline, on loop: ClientLoop
  ) async throws(TransportError) -> [SocketAddress] {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if let known = try known(host, port) { return known }
    let name: HostName
    do throws(HostName.Invalid) {
      name = try HostName(host)
    } catch {
      throw .resolutionFailed(host: host, reason: error.rawValue)
    }
    if name.isLocalhost { return Self.loopback.map { $0.with(port: port) } }
    switch try await lookUp(name, deadline: deadline, on: loop) {
    case .answer(.found(let addresses)): return addresses.map { $0.with(port: port) }
    case .answer(.noSuchName(let reason)), .answer(.failed(let reason)):
      throw .resolutionFailed(host: host, reason: reason)
    case .answer(.unavailable(let errno)): throw .unavailable(Errno(rawValue: errno))
    case .refused: throw .resolutionFailed(host: host, reason: "too many look-ups are under way")
    }
  }

  /// RFC 6761 6.3: `localhost` always has these addresses, independent of a hosts file or a name server.
  private static let loopback: [SocketAddress] = [.ipv6(high: 0, low: 1, scope: 0, port: 0), .loopback(port: 0)]

  /// Returns the addresses of a host that needs no look-up, or `nil` if `host` has to be looked up as a name.
  private func known(_ host: String, _ port: UInt16) throws(TransportError) -> [SocketAddress]? {
    if let addresses = try overrides.addresses(of: host, port: port, kernel: kernel) { return addresses }
    do throws(SocketAddress.UnknownZone) {
      return try SocketAddress(literal: host, port: port, kernel: kernel).map { [$0] }
    } catch {
      throw .resolutionFailed(host: host, reason: "no network interface is \"\(error.zone)\"")
    }
  }

  private func lookUp(
    _ name: HostName, deadline: Deadline, on loop: ClientLoop
  ) async throws(TransportError) -> Reply {
    let wait = Wait()
    var waiter: Machine.WaiterID = 0
    let now = kernel.now()
    decide { state in
      state.waitersSeen += 1
      waiter = state.waitersSeen
      state.waits[waiter] = wait
      state.machine.requested(name, by: waiter, now: now, into: &state.actions)
    }
    let outcome = await wait.outcome(deadline: deadline, on: loop)
    if case .fulfilled(let reply) = outcome { return reply }
    decide { state in
      state.waits[waiter] = nil
      state.machine.abandoned(by: waiter, into: &state.actions)
    }
    if case .timedOut = outcome { throw .timedOut(.resolving) }
    throw .cancelled
  }

  func answered(_ question: NameQuestion, _ answer: NameAnswer<[SocketAddress]>) {
    let answer = answer == .found([]) ? .noSuchName(reason: "the name has no address") : answer
    let now = kernel.now()
    decide { $0.machine.answered(question.number, answer, now: now, into: &$0.actions) }
  }

  // MARK: - Carrying out

  private func decide(_ fact: (inout State) -> Void) {
    let isPerformer = state.withLock { state in
      fact(&state)
      if state.isPerforming || state.actions.isEmpty { return false }
      state.isPerforming = true
      return true
    }
    guard isPerformer else { return }
    while let steps = takeSteps() {
      for step in steps { perform(step) }
    }
  }

  /// Takes the decided actions to perform.
  ///
  /// - Returns: The steps, or `nil` if there are none. Performing has then ended, and the next thread that decides
  ///   something starts again.
  private func takeSteps() -> [Step]? {
    state.withLock { state in
      let actions = state.actions
      state.actions = []
      state.isPerforming = !actions.isEmpty
      guard !actions.isEmpty else { return nil }
      return actions.compactMap { action -> Step? in
        switch action {
        case .start(let number, let name): .start(NameQuestion(number: number, name: name, resolver: self))
        case .cancel(let number, let name): .cancel(NameQuestion(number: number, name: name, resolver: self))
        case .answer(let waiter, let answer):
          state.waits.removeValue(forKey: waiter).map { .reply($0, .answer(answer)) }
        case .refuse(let waiter): state.waits.removeValue(forKey: waiter).map { .reply($0, .refused) }
        }
      }
    }
  }

  private func perform(_ step: Step) {
    switch step {
    case .start(let question): source.start(question)
    case .cancel(let question):
      let isOver = source.cancel(question)
      decide { state in
        if isOver {
          state.machine.cancelled(question.number, into: &state.actions)
        } else {
          state.machine.wentOn(question.number, into: &state.actions)
        }
      }
    case .reply(let wait, let reply): wait.finish(.fulfilled(reply))
    }
  }
}
