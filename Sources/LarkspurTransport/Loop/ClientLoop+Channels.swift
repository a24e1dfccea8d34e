import LarkspurBytes
import LarkspurIO

/// The slots, deadlines and memory of a loop's channels. All of it belongs to the thread that ticks.
extension ClientLoop {
  /// Assigns a slot to a channel.
  func register(_ channel: Channel) -> SlotID {
    let slotID = takeSlot()
    loopBound.state.slots[Int(slotID.slot)].channel = channel
    return slotID
  }

  /// Watches the socket in a slot. The socket must have started to connect: the kernel reports any other as hung up.
  func watch(_ descriptor: borrowing Descriptor, _ slotID: SlotID) throws(Errno) {
    try watcher.watch(descriptor, slot: slotID.slot, registration: slotID.registration)
  }

  /// Frees a slot. The kernel stops watching the socket when its descriptor is closed.
  func deregister(slot: UInt32) {
    loopBound.state.slots[Int(slot)].channel = nil
    loopBound.state.freeSlots.append(slot)
  }

  /// Calls `fire` on the loop's thread once the deadline has passed, unless the timer is stopped before. The timer
  /// keeps its slot until `stopTimer`, also after it has fired.
  public func startTimer(_ deadline: Deadline, _ fire: @escaping () -> Void) -> Timer {
    let (slot, registration) = takeSlot()
    loopBound.state.slots[Int(slot)].timer = fire
    if deadline != .never {
      insert(DeadlineHeap.Entry(deadline: deadline, slot: slot, registration: registration))
    }
    return Timer(slot: slot, registration: registration)
  }

  /// Stops a timer, whose slot becomes free. Call this once for each timer.
  public func stopTimer(_ timer: Timer) {
    guard loopBound.state.slots[Int(timer.slot)].registration == timer.registration else { return }
    loopBound.state.slots[Int(timer.slot)].timer = nil
    loopBound.state.freeSlots.append(timer.slot)
  }

  private func takeSlot() -> SlotID {
    let slot = loopBound.state.freeSlots.popLast() ?? UInt32(loopBound.state.slots.count)
    if slot == loopBound.state.slots.count { loopBound.state.slots.append(Slot()) }
    loopBound.state.slots[Int(slot)].registration &+= 1
    return (slot, loopBound.state.slots[Int(slot)].registration)
  }

  /// The number of channels and timers. For tests: a loop at rest that still has some has leaked them.
  public var slotsInUse: Int { loopBound.state.slots.count - loopBound.state.freeSlots.count }

  func channel(at slot: UInt32, registration: UInt32) -> Channel? {
    guard slot < loopBound.state.slots.count, loopBound.state.slots[Int(slot)].registration == registration else {
      return nil
    }
    return loopBound.state.slots[Int(slot)].channel
  }

  /// Calls `hook` once, after this tick's callbacks and jobs.
  func callAtEndOfTick(_ hook: any EndOfTickHook) { loopBound.state.endOfTickHooks.append(hook) }

  /// Wakes the channel's subscriber in the next tick.
  func yield(_ channel: Channel) { loopBound.state.yielding.append(channel) }

  func insert(_ entry: DeadlineHeap.Entry) {
    // Entries of closed channels stay in the heap until they are due. With many short connections and long deadlines
    // they would accumulate, so they are removed when most entries must be of that kind.
    if loopBound.state.deadlines.count > 64 + 4 * loopBound.state.slots.count {
      var deadlines = DeadlineHeap()
      swap(&deadlines, &loopBound.state.deadlines)
      deadlines.removeAll { !isAwaited($0) }
      swap(&deadlines, &loopBound.state.deadlines)
    }
    loopBound.state.deadlines.insert(entry)
    loopBound.state.soonest = loopBound.state.deadlines.soonest
  }

  private func isAwaited(_ entry: DeadlineHeap.Entry) -> Bool {
    let slot = loopBound.state.slots[Int(entry.slot)]
    guard slot.registration == entry.registration else { return false }
    return slot.timer != nil || slot.channel?.deadlineEntry == entry.deadline
  }

  func takeChunk(atLeast capacity: Int) -> Chunk { loopBound.state.chunks.take(atLeast: capacity) }

  func recycle(_ chunk: consuming Chunk) {
    if chunk.capacity > 0 { loopBound.state.chunks.recycle(chunk) }
  }

  /// The number of bytes of the loop's chunks that are in use. For tests: 0 for a loop at rest.
  public var chunkBytesLent: Int { loopBound.state.chunks.bytesLent }

  /// Maximum number of idle response storages that the loop keeps.
  private static let responsesMax = 64

  func takeResponseStorage() -> ResponseStorage { loopBound.state.responses.popLast() ?? ResponseStorage() }

  func recycle(_ storage: ResponseStorage) {
    if loopBound.state.responses.count < Self.responsesMax { loopBound.state.responses.append(storage) }
  }

  /// Returns the loop's pipe, for one step. `recycle` keeps the pipe only if it comes back empty.
  ///
  /// - Returns: The pipe, or `nil` if the system cannot create one.
  func takePipe() -> Pipe? {
    if let pipe = loopBound.state.pipe {
      loopBound.state.pipe = nil
      return pipe
    }
    return try? Pipe(kernel: kernel)
  }

  func recycle(_ pipe: Pipe) { if pipe.count == 0 { loopBound.state.pipe = pipe } }

  /// Whether a connect to the address failed a short while ago.
  func hasFailed(_ address: SocketAddress) -> Bool {
    loopBound.state.failedAddresses.contains(address, now: now)
  }

  func failedToConnect(to address: SocketAddress) { loopBound.state.failedAddresses.failed(address, now: now) }

  func connected(to address: SocketAddress) { loopBound.state.failedAddresses.succeeded(address) }
}
