/// A session's tasks that are not over. Each knows its place, and is not looked for. It is guarded by the session's lock.
struct TaskList {
  private(set) var members: [URLSessionTask] = []

  func contains(_ task: URLSessionTask) -> Bool { task.placeInSession != nil }

  mutating func insert(_ task: URLSessionTask) {
    guard !contains(task) else { return }
    task.placeInSession = members.count
    members.append(task)
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
