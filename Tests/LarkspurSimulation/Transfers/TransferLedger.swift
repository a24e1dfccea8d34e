import LarkspurHTTP
import LarkspurTransfers

/// The facts of a world of transfers that must hold in the end, kept outside of all processes.
struct TransferLedger {
  struct Task {
    /// Whether the creation was confirmed to the program.
    var isConfirmed = false
    /// The bytes that a record on the disk counts.
    var safe: ResumePoint?
    /// The events that are in a record on the disk, that have been delivered, and whose acknowledgement is on the disk.
    var written: Set<TransferRecord.Event> = []
    var delivered: Set<TransferRecord.Event> = []
    var acknowledged: Set<TransferRecord.Event> = []
  }

  private(set) var tasks: [Int: Task] = [:]
  private(set) var complaints: [String] = []
  private(set) var fetchedBytes = 0

  mutating func complain(_ text: String) { complaints.append(text) }

  mutating func confirm(_ task: Int) { tasks[task, default: Task()].isConfirmed = true }

  /// A record is on the disk.
  mutating func written(_ record: TransferRecord) {
    tasks[record.task, default: Task()].safe = record.resumePoint
    tasks[record.task, default: Task()].written.formUnion(record.events)
  }

  mutating func acknowledged(_ task: Int, _ events: some Sequence<TransferRecord.Event>) {
    tasks[task, default: Task()].acknowledged.formUnion(events)
  }

  /// A task receives bytes of a version from a position on.
  mutating func fetched(_ task: Int, _ validator: String, from offset: Int, count: Int) {
    fetchedBytes += count
    guard let safe = tasks[task]?.safe, safe.validator == validator, offset < safe.offset else { return }
    complain("task \(task) fetches byte \(offset), and \(safe.offset) are on the disk")
  }

  mutating func delivered(_ task: Int, _ event: TransferRecord.Event) {
    let entry = tasks[task, default: Task()]
    if entry.acknowledged.contains(event) { complain("\(event) of task \(task) comes after its acknowledgement") }
    tasks[task, default: Task()].delivered.insert(event)
  }

  /// Checks what must hold when no task is left.
  mutating func end(names: [String]) {
    for (number, task) in tasks.sorted(by: { $0.key < $1.key }) {
      if task.isConfirmed, !task.delivered.contains(.completed) { complain("task \(number) has no end") }
      let lost = task.written.subtracting(task.delivered)
      if !lost.isEmpty { complain("task \(number): \(lost) are lost") }
    }
    let left = names.filter { $0 != "lock" }
    if !left.isEmpty { complain("\(left) are left") }
  }
}
