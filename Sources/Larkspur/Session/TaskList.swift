/// A session's tasks that are not over. Each knows its place, and is not looked for. It is guarded by the session's lock.
struct TaskList {
  private(set) var members: [URLSessionTask] = []
  /// How many in a row, up to now, have been alone as they came.
  private var aloneCount = 0

  /// Whether one comes after another. (Of many that have ended together, the first to come again is alone, too.)
  var comeOneByOne: Bool { aloneCount >= 4 }

  func contains(_ task: URLSessionTask) -> Bool { task.placeInSession != nil }

  mutating func insert(_ task: URLSessionTask) {
    guard !contains(task) else { return }
    task.placeInSession = members.count
    members.append(task)
    aloneCount = members.count == 1 ? aloneCount + 1 : 0
  }

  /// The last one takes the free place.
  mutating func remove(_ task: URLSessionTask) {
    guard let place = task.placeInSession else { return }
    task.placeInSession = nil
    let last = members.removeLast()
    guard last !== task else { return }
    members[place] = last
    last.placeInSession = place
  }
}
