import Dispatch
import Foundation
import LarkspurTransfers
import Synchronization

/// The executor of a session that had none at first, or has lost it.
extension BackgroundSession {
  /// The search for the first executor has taken long, and is over.
  func opened(_ outcome: LinkOpening.Outcome) {
    switch outcome {
    case .success(let link) where link is AbsentLink: waitForEarlierSession()
    case .success(let link): resume(with: link)
    case .failure(let error): refuse(error)
    }
  }

  /// The earlier session may have the identifier for days, if its tasks are to end first.
  func waitForEarlierSession() {
    finishOpening()
    reconnect()
  }

  /// Ends all tasks, and those to come.
  private func refuse(_ error: URLError) {
    BackgroundLink.log(error.localizedDescription)
    let (tasks, flushes) = order.withLock { _ in
      state.withLock { state in
        state.refusal = error
        defer { (state.tasks, state.flushes) = ([:], []) }
        return (state.tasks, state.flushes)
      }
    }
    refuse(tasks.sorted { $0.key < $1.key }.map { ($1, error) })
    for completion in flushes { completion() }
    finishOpening()
  }

  /// Ends tasks. Those that the program has cancelled meanwhile end as cancelled ones.
  private func refuse(_ tasks: [(URLSessionTask, URLError)]) {
    for (task, error) in tasks {
      let isCancelled = task.state == .canceling
      TaskCompletion.refuse(task, isCancelled ? .make(.cancelled, "cancelled") : error, core)
    }
  }

  /// Connects with another executor in place of one that has gone: a service that was stopped or killed. Tries until there
  /// is one: the tasks are in the journal, and their ends are told once.
  func lost(_ reason: String) {
    BackgroundLink.log(reason)
    state.withLock { $0.isLost = true }
    reconnect()
  }

  func reconnect() {
    let losses = state.withLock { state in
      state.losses += 1
      return state.losses
    }
    // A service that ends again and again is not started again and again.
    let pause = losses < 2 ? 0 : min(0.01 * pow(2, Double(min(losses, 20))), Self.pauseMax)
    DispatchQueue.global().asyncAfter(deadline: .now() + pause) { [weak self] in self?.connect() }
  }

  private func connect() {
    // An earlier session gives its identifier up first, and then its mark. So the marks are counted before the attempt.
    let earlier = state.withLock { state -> Int? in
      guard !state.isClosed else { return nil }
      state.isConnecting = true
      return EndingSessions.count(directory) - (state.isEnding ? 1 : 0)
    }
    guard let earlier else { return }
    do throws(URLError) {
      resume(with: try BackgroundLink.open(core.configuration))
    } catch {
      let (isClosed, isWaiting) = state.withLock { state in
        state.isConnecting = false
        return (state.isClosed, state.link is AbsentLink)
      }
      if isClosed { return EndingSessions.remove(directory) }
      if isWaiting, earlier <= 0, error.code == .backgroundSessionInUseByAnotherProcess { return refuse(error) }
      let identifier = core.configuration.identifier ?? ""
      BackgroundLink.log("background session \"\(identifier)\": \(error.localizedDescription)")
      reconnect()
    }
  }

  /// Maximum pause before a lost service is replaced, in seconds.
  private static let pauseMax = 30.0

  /// Continues with the tasks where the journal has them. Commands that the lost executor had not carried out are sent
  /// again.
  private func resume(with new: any TransferLink) {
    let refused = order.withLock { _ -> [(URLSessionTask, URLError)]? in
      let (tasks, ending, old, isClosed) = state.withLock { state in
        let old = state.link
        state.isConnecting = false
        if !state.isClosed { (state.link, state.isLost) = (new, false) }
        return (state.tasks, state.ending, old, state.isClosed)
      }
      guard !isClosed else { return nil }
      if old is AbsentLink {
        // The session has been given none of these. Its own tasks have numbers that no record has.
        let earlier = new.records.filter { tasks[$0.task] == nil }
        if let session = state.withLock({ $0.session }) { restore(earlier, to: session) }
        return resume(tasks, with: new, known: Set(tasks.keys).union(new.records.map(\.task)))
      }
      return resume(tasks.filter { !ending.contains($0.key) }, with: new, known: Set(tasks.keys))
    }
    guard let refused else { return new.close { [directory] in EndingSessions.remove(directory) } }
    listen(to: new)
    finishOpening()
    refuse(refused)
    let flushes = state.withLock { state in
      defer { state.flushes = [] }
      return state.flushes
    }
    for completion in flushes { flush(completion) }
  }

  /// - Returns: The tasks that cannot be continued.
  private func resume(
    _ tasks: [Int: URLSessionTask], with new: any TransferLink, known: Set<Int>
  ) -> [(URLSessionTask, URLError)] {
    let records = Dictionary(new.records.map { ($0.task, $0) }) { $1 }
    for record in records.values where !known.contains(record.task) {
      // The program has been given all events of this task.
      new.send(.acknowledge(task: record.task, count: record.events.count))
    }
    var refused: [(URLSessionTask, URLError)] = []
    for (identifier, task) in tasks.sorted(by: { $0.key < $1.key }) {
      if let record = records[identifier] {
        deliver(record, to: task)
        sendState(of: task, by: new)
        continue
      }
      do throws(URLError) {
        var record = try Self.record(of: task, in: core)
        Self.moveContent(of: task, into: &record, new)
        create(task, record, by: new)
      } catch {
        state.withLock { _ = $0.tasks.removeValue(forKey: identifier) }
        refused.append((task, error))
      }
    }
    return refused
  }
}
