import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// A name source whose answers a test gives: at once, later, or never.
package final class ScriptedNames: NameSource {
  package typealias Outcome = NameAnswer<[SocketAddress]>

  private struct State {
    var prepared: [String: Outcome] = [:]
    var open: [NameQuestion] = []
    var asked: [String] = []
    var cancelled: [String] = []
    var callsNested = 0
    var callsNestedMax = 0
  }

  private let state = Mutex(State())
  private let isCancellable: Bool

  package init(isCancellable: Bool = true) {
    self.isCancellable = isCancellable
  }

  /// Every question so far, in order.
  package var asked: [String] { state.withLock { $0.asked } }
  package var cancelled: [String] { state.withLock { $0.cancelled } }
  /// Maximum number of nested calls of `start`.
  package var callsNestedMax: Int { state.withLock { $0.callsNestedMax } }
  /// The questions that have neither been answered nor cancelled.
  package var open: [String] { state.withLock { $0.open.map(\.name.question) } }

  /// Makes questions for the name be answered at once from now on.
  package func willAnswer(_ name: String, _ outcome: Outcome) { state.withLock { $0.prepared[name] = outcome } }

  /// Answers the oldest open question for the name.
  ///
  /// - Returns: The question, or `nil` if there is none.
  @discardableResult
  package func answer(_ name: String, _ outcome: Outcome) -> NameQuestion? {
    let question = state.withLock { state -> NameQuestion? in
      state.open.firstIndex { $0.name.question == name }.map { state.open.remove(at: $0) }
    }
    question?.answer(outcome)
    return question
  }

  package func start(_ question: NameQuestion) {
    let outcome = state.withLock { state -> Outcome? in
      state.asked.append(question.name.question)
      state.callsNested += 1
      state.callsNestedMax = max(state.callsNestedMax, state.callsNested)
      let outcome = state.prepared[question.name.question]
      if outcome == nil { state.open.append(question) }
      return outcome
    }
    if let outcome { question.answer(outcome) }
    state.withLock { $0.callsNested -= 1 }
  }

  package func cancel(_ question: NameQuestion) -> Bool {
    state.withLock { state in
      state.cancelled.append(question.name.question)
      if isCancellable { state.open.removeAll { $0.number == question.number } }
      return isCancellable
    }
  }
}
