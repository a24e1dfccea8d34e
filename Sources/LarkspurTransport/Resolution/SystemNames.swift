import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The system's resolver (getaddrinfo), which blocks. Each look-up has its own thread.
///
/// After an answer a thread waits for another question for `idleLifetime`, and then ends. There are never more threads
/// than a resolver runs look-ups at once (`NameLimits.lookUpsMax` and `abandonedLookUpsMax`). A look-up cannot be
/// cancelled, because getaddrinfo offers no way to do so.
public final class SystemNames: NameSource {
  /// The time for which an idle thread waits for another question. Starting a thread costs less than a look-up, so this
  /// only helps with bursts.
  public static let idleLifetime = Duration.seconds(5)

  /// The place where an idle thread waits for a question.
  private final class Seat: Sendable {
    let question = Mutex<NameQuestion?>(nil)
    let latch = Latch()
  }

  private struct State {
    /// The idle threads. The one that became idle last gets the next question, so that surplus threads reach the end of
    /// their `idleLifetime`.
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

  /// The number of threads, idle or not.
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
      // The thread counts as idle before it answers, so that a look-up for which the answer makes room uses this thread
      // and not a new one.
      let seat = Seat()
      state.withLock { $0.seats.append(seat) }
      question.answer(answer)
      next = waitForQuestion(in: seat)
    }
  }

  /// Waits for another question.
  ///
  /// - Returns: The question, or `nil` if the thread has to end. The thread is not counted any more then.
  private func waitForQuestion(in seat: Seat) -> NameQuestion? {
    if !seat.latch.wait(until: LinuxKernel.shared.now().advanced(by: idleLifetime)) {
      let isLeft = state.withLock { state in
        guard let index = state.seats.firstIndex(where: { $0 === seat }) else { return false }
        state.seats.remove(at: index)
        state.threads -= 1
        return true
      }
      if isLeft { return nil }
      // Another thread has taken the seat at the last moment and is about to set a question.
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
