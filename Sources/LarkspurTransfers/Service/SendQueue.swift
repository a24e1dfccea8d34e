/// The notices that a program has not been sent yet.
///
/// The size is bounded for a program that never reads: each task has one entry, with its latest record and counts, and
/// there are at most `questionsMax` questions.
package struct SendQueue: Sendable {
  static let questionsMax = 1024

  private enum Key: Hashable {
    case task(Int)
    case question(UInt64)
  }

  private struct Changes {
    var record: TransferRecord?
    /// The counts, if they are newer than those of the record.
    var counts: TransferRecord.Counts?
  }

  private var order: [Key] = []
  /// The position of the first key that has not been taken.
  private var start = 0
  private var changes: [Int: Changes] = [:]
  private var questions: [UInt64: TransferNotice] = [:]

  package init() {}

  var isEmpty: Bool { start == order.count }
  /// The number of entries.
  package var count: Int { order.count - start }

  /// Adds a notice.
  ///
  /// - Returns: `false` if the notice is a question and there are too many.
  package mutating func add(_ notice: TransferNotice) -> Bool {
    switch notice {
    case .changed(let record):
      enqueue(record.task)
      changes[record.task] = Changes(record: record)
    case .progress(let task, let counts):
      enqueue(task)
      if changes[task]?.record != nil {
        changes[task]?.record?.counts = counts
      } else {
        changes[task] = Changes(counts: counts)
      }
    case .question(let number, _, _):
      guard questions.count < Self.questionsMax else { return false }
      if questions.updateValue(notice, forKey: number) == nil { order.append(.question(number)) }
    case .lost: break
    }
    return true
  }

  private mutating func enqueue(_ task: Int) {
    if changes[task] == nil { order.append(.task(task)) }
  }

  /// Removes and returns the next notice, or returns `nil` if there is none.
  package mutating func next() -> TransferNotice? {
    guard start < order.count else { return nil }
    let key = order[start]
    start += 1
    // Each key is moved once for each time that the list doubles.
    if start > 32, start * 2 > order.count {
      order.removeFirst(start)
      start = 0
    }
    switch key {
    case .question(let number): return questions.removeValue(forKey: number)
    case .task(let task):
      guard let change = changes.removeValue(forKey: task) else { return nil }
      return change.record.map { .changed($0) } ?? change.counts.map { .progress(task: task, $0) }
    }
  }
}
