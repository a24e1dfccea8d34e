/// The latest of many records. Each has a place, counted from the first one ever.
struct Recent<Record> {
  private var records: [Record] = []
  /// How many older ones are no more in `records`.
  private var forgotten = 0
  private let countMax: Int

  init(countMax: Int) {
    self.countMax = max(countMax, 0)
  }

  /// The result is its place.
  mutating func append(_ record: Record) -> Int {
    records.append(record)
    // Dropped by halves: so that each record is moved once at most.
    if records.count >= 2 * max(countMax, 1) {
      let surplus = records.count - countMax
      records.removeFirst(surplus)
      forgotten += surplus
    }
    return forgotten + records.count - 1
  }

  /// Changes one, if it is still there.
  mutating func replace(_ place: Int, with record: Record) {
    let index = place - forgotten
    if records.indices.contains(index) { records[index] = record }
  }

  var latest: [Record] { Array(records.suffix(countMax)) }
}
