/// The latest of many records. Each record has a number: its index among all records since the beginning.
struct Recent<Record> {
  private var records: [Record] = []
  /// The number of older records that have been dropped from `records`.
  private var forgotten = 0
  private let countMax: Int

  init(countMax: Int) {
    self.countMax = max(countMax, 0)
  }

  /// - Returns: The record's number.
  mutating func append(_ record: Record) -> Int {
    records.append(record)
    // The older half is dropped at once, so that each record is moved at most once.
    if records.count >= 2 * max(countMax, 1) {
      let excess = records.count - countMax
      records.removeFirst(excess)
      forgotten += excess
    }
    return forgotten + records.count - 1
  }

  /// Replaces a record, if it has not been dropped.
  mutating func replace(_ recordNumber: Int, with record: Record) {
    let index = recordNumber - forgotten
    if records.indices.contains(index) { records[index] = record }
  }

  /// Changes a record in place, if it has not been dropped.
  mutating func amend(_ recordNumber: Int, _ change: (inout Record) -> Void) {
    let index = recordNumber - forgotten
    if records.indices.contains(index) { change(&records[index]) }
  }

  var latest: [Record] { Array(records.suffix(countMax)) }
}

extension Recent: Sendable where Record: Sendable {}
