import LarkspurHTTP
import LarkspurTransfers

/// The facts of a world of transfers that must hold in the end, kept outside of all processes.
struct TransferLedger {
  struct Task {
    /// Whether the program was confirmed that the task outlives it.
    var isConfirmed = false
    /// Whether the program has cancelled the task, or its question.
    var isExcused = false
    /// Whether the program has ended the task without a runner.
    var isRefused = false
    /// Whether the program has moved the file.
    var isTaken = false
    /// The bytes that the last record on the disk with a version has counted.
    var safe: ResumePoint?
    /// Whether a record on the disk has the end.
    var hasEnd = false
    /// The events that have been delivered, and whose acknowledgement is on the disk.
    var delivered: Set<TransferRecord.Event> = []
    var acknowledged: Set<TransferRecord.Event> = []
  }

  /// Whether a call of the disk has failed whose process lives on. Then an end may have reached the program, and no disk.
  var hasDiskFailed = false
  private(set) var tasks: [Int: Task] = [:]
  private(set) var complaints: [String] = []
  private(set) var fetchedBytes = 0
  private(set) var deliveredFiles = 0
  private(set) var questions = 0

  mutating func complain(_ text: String) { complaints.append(text) }

  mutating func confirm(_ task: Int) { tasks[task, default: Task()].isConfirmed = true }

  mutating func excuse(_ task: Int) { tasks[task, default: Task()].isExcused = true }

  mutating func refused(_ task: Int) { tasks[task, default: Task()].isRefused = true }

  mutating func asked() { questions += 1 }

  /// A record is on the disk.
  mutating func written(_ record: TransferRecord) {
    if let point = record.resumePoint { tasks[record.task, default: Task()].safe = point }
    if record.state == .completed { tasks[record.task, default: Task()].hasEnd = true }
  }

  mutating func acknowledged(_ task: Int, _ events: some Sequence<TransferRecord.Event>) {
    tasks[task, default: Task()].acknowledged.formUnion(events)
  }

  /// A task receives bytes of a version from a position on.
  mutating func fetched(_ task: Int, _ validator: String, from offset: Int, count: Int) {
    fetchedBytes += count
    guard !hasDiskFailed, let safe = tasks[task]?.safe, safe.validator == validator, offset < safe.offset else {
      return
    }
    complain("task \(task) fetches byte \(offset), and \(safe.offset) are on the disk")
  }

  mutating func cannotContinue(_ task: Int, from start: Int, with count: Int) {
    if !hasDiskFailed { complain("task \(task) has \(count) bytes, and its record counts \(start)") }
  }

  /// The program takes a file.
  ///
  /// - Parameter isWhole: `nil` if there is no file.
  mutating func took(_ task: Int, isWhole: Bool?, isMoved: Bool) {
    // A process that was killed after it had moved the file did not acknowledge it.
    if isWhole != true, !hasDiskFailed, tasks[task]?.isTaken != true {
      complain("the file of task \(task) is \(isWhole == nil ? "gone" : "not whole")")
    }
    deliveredFiles += 1
    if isMoved { tasks[task, default: Task()].isTaken = true }
  }

  mutating func delivered(_ record: TransferRecord, _ event: TransferRecord.Event) {
    let task = tasks[record.task, default: Task()]
    if task.acknowledged.contains(event) {
      complain("\(event) of task \(record.task) comes after its acknowledgement")
    }
    if event == .completed, record.failure != nil, !task.isExcused, !hasDiskFailed {
      complain("task \(record.task) has failed")
    }
    if event == .completed, record.failure == nil, !task.delivered.contains(.downloaded) {
      complain("task \(record.task) has no file")
    }
    tasks[record.task, default: Task()].delivered.insert(event)
  }

  /// Checks what must hold when no task is left.
  mutating func end(names: [String]) {
    for (number, task) in tasks.sorted(by: { $0.key < $1.key }) {
      let isEnded = task.isRefused || task.delivered.contains(.completed)
      if task.isConfirmed || task.hasEnd, !isEnded, !hasDiskFailed { complain("task \(number) has no end") }
    }
    let left = names.filter { $0 != "lock" }
    if !left.isEmpty { complain("\(left) are left") }
  }
}
