/// The listeners of an event source, in the order in which they were added.
struct EventListeners {
  /// What a listener does for one event, on the completion queue.
  struct Call {
    let identifier: UInt
    let body: () -> Void
  }

  struct Listener {
    let identifier: UInt
    let event: String
    /// Reads an event, on the reader's queue.
    ///
    /// - Returns: The call for the completion queue, or `nil` if the event does not concern the listener.
    let read: (AFServerSentEvent) -> (() -> Void)?

    func call(for event: AFServerSentEvent) -> Call? { read(event).map { Call(identifier: identifier, body: $0) } }
  }

  private var list: [Listener] = []
  private var latestIdentifier: UInt = 0

  /// - Returns: The listener's number, which no other listener gets.
  mutating func add(for event: String, _ read: @escaping (AFServerSentEvent) -> (() -> Void)?) -> UInt {
    latestIdentifier &+= 1
    list.append(Listener(identifier: latestIdentifier, event: event, read: read))
    return latestIdentifier
  }

  /// Removes listeners.
  ///
  /// - Returns: The removed listeners, to be released after the owner's lock: their blocks belong to the program.
  mutating func remove(_ isRemoved: (Listener) -> Bool) -> [Listener] {
    let removed = list.filter(isRemoved)
    list.removeAll(where: isRemoved)
    return removed
  }

  func listeners(for event: String) -> [Listener] { list.filter { $0.event == event } }

  func contains(_ identifier: UInt) -> Bool { list.contains { $0.identifier == identifier } }
}
