/// The tasks of one session, by what the service has received: from the executor's notices and the program's commands.
///
/// A notice may have been made before the executor has seen the latest commands. What only the program changes is
/// therefore taken from its commands: suspension, cancellation, properties, and the events that it has acknowledged.
struct TransferTable: Sendable {
  private struct Entry {
    var record: TransferRecord
    /// The state by the latest command, or `nil` if there was none.
    var commanded: TransferRecord.State?
    var properties: TransferProperties?
    /// The events that were acknowledged last, which the executor may not have removed yet.
    var acknowledged: [TransferRecord.Event] = []

    mutating func show() {
      if record.state != .completed, let commanded { record.state = commanded }
      if let properties {
        record.taskDescription = properties.description
        record.priority = properties.priority
        record.counts.clientExpectsToSend = properties.clientExpectsToSend
        record.counts.clientExpectsToReceive = properties.clientExpectsToReceive
      }
    }
  }

  private var entries: [Int: Entry] = [:]

  init(_ records: [TransferRecord] = []) {
    for record in records { entries[record.task] = Entry(record: record) }
  }

  var count: Int { entries.count }

  /// The tasks in the order of their identifiers.
  var records: [TransferRecord] { entries.values.map(\.record).sorted { $0.task < $1.task } }

  subscript(task: Int) -> TransferRecord? { entries[task]?.record }

  /// Whether a task is to be carried out, or is being cancelled. Suspended tasks need no executor until a program
  /// resumes them.
  var isWorking: Bool { entries.values.contains { Self.isWorking($0.record) } }

  /// The tasks that are to be carried out, or are being cancelled.
  var working: Set<Int> {
    Set(entries.values.filter { Self.isWorking($0.record) }.map(\.record.task))
  }

  private static func isWorking(_ record: TransferRecord) -> Bool {
    record.state == .running || record.state == .canceling
  }

  /// Whether a task has ended with events that no program has taken.
  var hasEnd: Bool { entries.values.contains { $0.record.hasUntoldEnd } }

  mutating func apply(_ command: TransferCommand) {
    switch command {
    case .create(let record):
      if entries[record.task] == nil { entries[record.task] = Entry(record: record) }
    case .resume(let task): setState(of: task, from: [.suspended], to: .running)
    case .suspend(let task): setState(of: task, from: [.running], to: .suspended)
    case .cancel(let task, _): setState(of: task, from: [.running, .suspended], to: .canceling)
    case .update(let task, let properties):
      guard entries[task]?.record.state != .completed else { return }
      entries[task]?.properties = properties
      entries[task]?.show()
    case .acknowledge(let task, let count): acknowledge(task, count)
    case .answer: break
    }
  }

  private mutating func setState(of task: Int, from states: [TransferRecord.State], to state: TransferRecord.State) {
    guard let present = entries[task]?.record.state, states.contains(present) else { return }
    entries[task]?.commanded = state
    entries[task]?.show()
  }

  private mutating func acknowledge(_ task: Int, _ count: Int) {
    guard var entry = entries[task] else { return }
    let taken = entry.record.events.prefix(max(count, 0))
    entry.record.events.removeFirst(taken.count)
    entry.acknowledged += taken
    if entry.acknowledged.count > TransferRecord.eventsMax {
      entry.acknowledged.removeFirst(entry.acknowledged.count - TransferRecord.eventsMax)
    }
    let isOver = entry.record.state == .completed && entry.record.events.isEmpty
    entries[task] = isOver ? nil : entry
  }

  /// Takes a notice. Notices of tasks whose end has been acknowledged have no effect.
  mutating func apply(_ notice: TransferNotice) {
    switch notice {
    case .changed(let record):
      guard var entry = entries[record.task], entry.record.state != .completed || record.state == .completed else {
        return
      }
      var events = record.events[...]
      if events.starts(with: entry.acknowledged + entry.record.events) {
        // The executor had not seen the acknowledgement.
        events = events.dropFirst(entry.acknowledged.count)
      } else {
        entry.acknowledged = []
      }
      entry.record = record
      entry.record.events = Array(events)
      entry.show()
      entries[record.task] = entry
    case .progress(let task, let counts):
      guard entries[task]?.record.state != .completed else { return }
      entries[task]?.record.counts = counts
      entries[task]?.show()
    case .question, .lost: break
    }
  }
}
