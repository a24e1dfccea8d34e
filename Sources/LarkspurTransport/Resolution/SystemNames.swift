import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The system's resolver, which blocks: each look-up has a thread for itself.
///
/// A thread that has answered waits for another question for a while, and then ends. There are never more threads than
/// a resolver runs look-ups at once (`NameLimits.lookUpsMax` and `abandonedLookUpsMax`). It is not to be cancelled: getaddrinfo offers no way.
public final class SystemNames: NameSource {
  /// How long a thread waits for more to do. Starting one costs less than a look-up: this only spares bursts.
  public static let idleLifetime = Duration.seconds(5)

  /// Where a thread waits for a question, or will in a moment.
  private final class Seat: Sendable {
    let question = Mutex<NameQuestion?>(nil)
    let latch = Latch()
  }

  private struct State {
    /// The one that sat down last is the first to get up: those who are not needed end.
    var seats: [Seat] = []
    var threads = 0
  }

  private let state = Mutex(State())
  private let idleLifetime: Duration
  private let lookUp: @Sendable (HostName) -> NameAnswer<[SocketAddress]>

  public init(
    idleLifetime: Duration = SystemNames.idleLifetime,
    lookUp: @escaping @Sendable (HostName) -> NameAnswer<[SocketAddress]> = SystemNames.ask
  ) {
    self.idleLifetime = idleLifetime
    self.lookUp = lookUp
  }

  /// How many threads there are.
  public var threadCount: Int { state.withLock { $0.threads } }

  public func start(_ question: NameQuestion) {
    let seat = state.withLock { state -> Seat? in
      if state.seats.isEmpty { state.threads += 1 }
      return state.seats.popLast()
    }
    if let seat {
      seat.question.withLock { $0 = question }
      return seat.latch.open()
    }
    do throws(Errno) {
      try SystemThread(name: "larkspur-names") { [self] in serve(question) }.detach()
    } catch {
      state.withLock { $0.threads -= 1 }
      question.answer(.unavailable(errno: error.rawValue))
    }
  }

  private func serve(_ first: NameQuestion) {
    var next: NameQuestion? = first
    while let question = next {
      let answer = lookUp(question.name)
      // Before the answer: the look-up that it makes room for takes this thread, and not a new one.
      let seat = Seat()
      state.withLock { $0.seats.append(seat) }
      question.answer(answer)
      next = waitForQuestion(in: seat)
    }
  }

  /// Nil: the thread is to end, and is not counted any more.
  private func waitForQuestion(in seat: Seat) -> NameQuestion? {
    if !seat.latch.wait(until: LinuxKernel.shared.now().advanced(by: idleLifetime)) {
      let isLeft = state.withLock { state in
        guard let place = state.seats.firstIndex(where: { $0 === seat }) else { return false }
        state.seats.remove(at: place)
        state.threads -= 1
        return true
      }
      if isLeft { return nil }
      // Somebody has taken the seat at the last moment, and brings a question.
      seat.latch.wait()
    }
    return seat.question.withLock { $0 }
  }

  @Sendable
  public static func ask(_ name: HostName) -> NameAnswer<[SocketAddress]> {
    do throws(NameLookup.Failure) {
      return .found(try NameLookup.addresses(of: name.question, port: 0))
    } catch {
      switch error {
      case .noSuchName(let reason): return .noSuchName(reason: reason)
      case .failed(let reason): return .failed(reason: reason)
      case .unavailable(let error): return .unavailable(errno: error.rawValue)
      }
    }
  }
}
