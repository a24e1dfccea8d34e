/// The tasks of a background session, on the program's side.
extension SessionLinkMachine {
  /// Whether the runner can be sent commands for a task.
  private func reaches(_ task: Int) -> Bool { state == .attached && tasks[task]?.phase == .sent }

  // MARK: - The program's changes

  /// Begins a task that has been resumed for the first time.
  ///
  /// - Parameter record: Its state is the one that the program has set meanwhile.
  /// - Returns: The reason why the task cannot be carried out, or `nil`.
  package mutating func begin(
    _ record: TransferRecord, isKeepingContent: Bool = false, into actions: inout Actions
  ) -> Refusal? {
    switch state {
    case .refused(let error): return .link(error)
    case .closing, .closed: return .cancelled
    case .searching, .waiting, .lost: if record.state == .canceling { return .cancelled }
    case .attached: break
    }
    var task = TransferTask(record, isNew: true)
    if record.state == .canceling { task.apply(.cancelled(isKeepingContent: isKeepingContent)) }
    tasks[record.task] = task
    if state == .attached { create(record.task, into: &actions) }
    return nil
  }

  package mutating func suspensionChanged(of task: Int, isSuspended: Bool, into actions: inout Actions) {
    tasks[task]?.apply(isSuspended ? .suspended() : .resumed())
    if reaches(task) { actions.append(.send(isSuspended ? .suspend(task: task) : .resume(task: task))) }
  }

  package mutating func update(_ task: Int, _ properties: TransferProperties, into actions: inout Actions) {
    tasks[task]?.apply(.updated(properties))
    if reaches(task) { actions.append(.send(.update(task: task, properties))) }
  }

  package mutating func cancel(_ task: Int, isKeepingContent: Bool, into actions: inout Actions) {
    tasks[task]?.apply(.cancelled(isKeepingContent: isKeepingContent))
    switch tasks[task]?.phase {
    case .new:
      // No runner has been sent the task, and the next one may come after days.
      tasks[task] = nil
      actions.append(.refuse(task, .cancelled))
    case .sent:
      if state == .attached { actions.append(.send(.cancel(task: task, isKeepingContent: isKeepingContent))) }
    // The download has no other end.
    case .left: actions.append(.call(.left))
    case .ending, .kept, nil: break
    }
  }

  // MARK: - The runner's tasks

  /// Continues with the tasks where a new runner has them.
  mutating func continueTasks(
    _ records: [TransferRecord], adopting isFirst: Bool, into actions: inout Actions
  ) {
    let found = Dictionary(records.map { ($0.task, $0) }) { $1 }
    let own = tasks.filter { $0.value.phase != .new || found[$0.key] == nil }.keys.sorted()
    var hasEvents = false
    for record in records {
      switch tasks[record.task]?.phase {
      // Another process has used the session since this process chose the identifier, so the record belongs to another
      // task.
      case .new: actions.append(.refuse(record.task, .link(.inUse)))
      case nil where isFirst: break
      case nil:
        // The program has been given all events of this task.
        dismiss(record.task, isEnded: record.state == .completed, into: &actions)
        continue
      case .sent, .ending, .left, .kept: continue
      }
      tasks[record.task] = TransferTask(record, isNew: false)
      actions.append(.adopt(record))
      hasEvents = hasEvents || !record.events.isEmpty
      deliver(record.task, into: &actions)
    }
    if hasEvents { actions.append(.call(.finishEvents)) }
    for task in own {
      switch (tasks[task]?.phase, found[task]) {
      case (.sent, let record?):
        changed(record, into: &actions)
        if tasks[task]?.phase == .sent { sendState(of: task, isNew: false, into: &actions) }
      case (.new, _), (.sent, nil): create(task, into: &actions)
      case (.ending, let record?) where record.state != .completed: tasks[task]?.apply(.endLost)
      case (.ending, _), (.left, _), (.kept, _), (nil, _): break
      }
    }
  }

  private mutating func create(_ task: Int, into actions: inout Actions) {
    tasks[task]?.apply(.sent)
    guard var record = tasks[task]?.record else { return }
    record.state = .running
    actions.append(.create(record))
    sendState(of: task, isNew: true, into: &actions)
  }

  /// Sends the program's changes of a task so far.
  private func sendState(of number: Int, isNew: Bool, into actions: inout Actions) {
    guard let task = tasks[number] else { return }
    if !isNew { actions.append(.send(.update(task: number, TransferProperties(task.record)))) }
    switch task.record.state {
    case .running: if !isNew { actions.append(.send(.resume(task: number))) }
    case .suspended: actions.append(.send(.suspend(task: number)))
    case .canceling: actions.append(.send(.cancel(task: number, isKeepingContent: task.keepsContent ?? false)))
    case .completed: break
    }
  }

  /// Makes the runner remove a task that is over.
  ///
  /// - Parameter isEnded: Whether the runner has the end of the task.
  private func dismiss(_ task: Int, isEnded: Bool = false, into actions: inout Actions) {
    if !isEnded { actions.append(.send(.cancel(task: task, isKeepingContent: false))) }
    actions.append(.send(.acknowledge(task: task, count: TransferRecord.eventsMax)))
  }

  /// An adopted task cannot be shown: its record has no URL, or the session is gone.
  ///
  /// - Parameter isReadable: Whether another session can show the task.
  package mutating func rejected(_ task: Int, isReadable: Bool, into actions: inout Actions) {
    tasks[task]?.apply(.kept)
    guard !isReadable, tasks.removeValue(forKey: task) != nil, state == .attached else { return }
    dismiss(task, into: &actions)
  }

  // MARK: - Notices

  mutating func changed(_ record: TransferRecord, into actions: inout Actions) {
    guard let phase = tasks[record.task]?.phase else {
      // A runner that had lost the end has completed the task again, after it was acknowledged.
      if record.state == .completed { dismiss(record.task, isEnded: true, into: &actions) }
      return
    }
    guard phase == .new || phase == .sent else { return }
    tasks[record.task]?.apply(.changed(record))
    deliver(record.task, into: &actions)
  }

  /// Makes the calls for the events of a task.
  private mutating func deliver(_ number: Int, into actions: inout Actions) {
    guard let task = tasks[number] else { return }
    let resumptions = task.record.events.lazy.compactMap { event in
      if case .resumed(let offset, let expected) = event { (offset, expected) } else { nil }
    }
    if let (offset, expected) = resumptions.first, !task.hasReportedResumption {
      tasks[number]?.apply(.resumptionReported)
      actions.append(.call(.resumed(number, offset: offset, expected: expected, link: link)))
    }
    if task.phase == .ending { actions.append(.call(.end(number))) }
  }

  mutating func progressed(_ task: Int, _ counts: TransferRecord.Counts, into actions: inout Actions) {
    guard tasks[task]?.phase == .sent else { return }
    tasks[task]?.apply(.progressed(counts))
    actions.append(.show(task))
    guard let task = tasks[task], task.hasProgress, !task.isReportDue else { return }
    // Calls that have not begun are joined.
    tasks[task.record.task]?.apply(.reportDue)
    actions.append(.call(.progress(task.record.task)))
  }

  // MARK: - Delegate calls

  /// The delegate is being called with the current counts of a task.
  ///
  /// - Returns: The number of bytes that no delegate has seen, or `nil` if there is nothing to report.
  package mutating func report(_ task: Int) -> Int64? {
    guard let current = tasks[task] else { return nil }
    tasks[task]?.apply(.reported)
    return current.hasProgress ? current.unseenBytes : nil
  }

  /// The call for a continued download has been made.
  package mutating func acknowledgeResumption(of task: Int, by number: Int, into actions: inout Actions) {
    // Another runner may have other events.
    guard number == link, state == .attached else { return }
    actions.append(.send(.acknowledge(task: task, count: 1)))
  }

  /// The last call of a task has been made.
  package mutating func ended(_ task: Int, into actions: inout Actions) {
    guard let current = tasks[task], current.phase == .ending else { return }
    tasks[task] = nil
    // Without a runner, the next one is sent this.
    if state == .attached { dismiss(task, isEnded: !current.isEndLost, into: &actions) }
  }

  /// The delegate has no place for the file of a download yet.
  ///
  /// - Returns: Whether the session is over with the task, whose file the next session delivers.
  package mutating func left(_ task: Int, isCancelled: Bool, into actions: inout Actions) -> Bool {
    guard let current = tasks[task], current.phase == .ending else { return false }
    tasks[task]?.apply(.fileLeft)
    if isCancelled || current.isCancelled {
      // The program has cancelled the task during the call.
      actions.append(.call(.left))
    } else if isEnding {
      tasks[task]?.apply(.kept)
      return true
    }
    return false
  }

  /// Calls the delegate once more for the files that it has left.
  package mutating func deliverLeft(into actions: inout Actions) {
    // The delegate may be about to leave the file of a task whose calls are being made.
    let isDue = tasks.values.contains { $0.phase == .left || $0.phase == .ending }
    if isDue { actions.append(.call(.left)) }
  }

  /// The delegate is being called once more for the files that it has left.
  ///
  /// - Returns: Their tasks.
  package mutating func offerLeft() -> [Int] {
    let left = tasks.filter { $0.value.phase == .left }.keys.sorted()
    for task in left { tasks[task]?.apply(.fileOffered) }
    return left
  }
}
