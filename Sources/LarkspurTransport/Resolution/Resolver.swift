import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Finds the addresses of hosts, for any number of loops: carries out what a `NameMachine` decides.
///
/// The overrides count first; then IP addresses, which are not looked up; then `localhost`; then the source.
///
/// There is one lock, and it is not held while anybody is called. What the machine has decided is carried out in its
/// order, by one thread at a time: whoever finds nobody at it does it, for all. So a look-up is never cancelled
/// before it is started, and a source that answers at once does not make calls nest.
public final class Resolver: Sendable {
  /// The system's names, for everybody.
  public static let shared = Resolver()

  private typealias Machine = NameMachine<[SocketAddress]>
  private typealias Wait = Answer<Reply>

  private enum Reply: Sendable {
    case answer(NameAnswer<[SocketAddress]>)
    case refused
  }

  private struct State {
    var machine: Machine
    var waits: [Machine.Waiter: Wait] = [:]
    var waitersSeen: Machine.Waiter = 0
    /// Decided, and not carried out.
    var actions: Machine.Actions = []
    var isPerforming = false
  }

  /// An action, with all that it takes to carry it out.
  private enum Step {
    case start(NameQuestion)
    case cancel(NameQuestion)
    case reply(Wait, Reply)
  }

  private let state: Mutex<State>
  private let source: any NameSource
  private let overrides: HostOverrides
  /// For its clock, and its interfaces.
  private let kernel: any Kernel

  public init(
    source: any NameSource, overrides: HostOverrides = HostOverrides(), limits: NameLimits = NameLimits(),
    kernel: any Kernel = LinuxKernel.shared
  ) {
    self.source = source
    self.overrides = overrides
    self.kernel = kernel
    state = Mutex(State(machine: Machine(limits: limits)))
  }

  /// With the system's names.
  public convenience init(overrides: HostOverrides = HostOverrides(), limits: NameLimits = NameLimits()) {
    self.init(source: SystemNames(), overrides: overrides, limits: limits)
  }

  /// The addresses of `host`, a name or an IP address without brackets, in the order in which they are to be tried.
  public func addresses(
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

  /// RFC 6761 6.3: always these, whatever a hosts file or a name server says.
  private static let loopback: [SocketAddress] = [.ipv6(high: 0, low: 1, scope: 0, port: 0), .loopback(port: 0)]

  /// What needs no name. Nil: `host` is to be read as one.
  private func known(_ host: String, _ port: UInt16) throws(TransportError) -> [SocketAddress]? {
    if let addresses = overrides.addresses(of: host, port: port) {
      guard !addresses.isEmpty else {
        throw .resolutionFailed(host: host, reason: "an override takes its addresses away")
      }
      return addresses
    }
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
    var waiter: Machine.Waiter = 0
    let now = kernel.now()
    decide { state in
      state.waitersSeen += 1
      waiter = state.waitersSeen
      state.waits[waiter] = wait
      state.machine.wanted(name, by: waiter, now: now, into: &state.actions)
    }
    let outcome = await wait.outcome(deadline: deadline, on: loop)
    if case .answered(let reply) = outcome { return reply }
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

  /// Nil: there is nothing to do, and the next who decides something is to carry it out.
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
    case .reply(let wait, let reply): wait.finish(.answered(reply))
    }
  }
}
