import LarkspurBytes
import LarkspurIO

/// A kernel, its clock and its network, in memory. Used by one thread.
///
/// Theory of operation. All future events are in one queue, ordered by time. The clock advances when the loop would
/// sleep, to the next event or to the end of the sleep, and by a little in each call. Events that have become due
/// happen at the beginning of the next call. Nothing depends on the real clock, on addresses in memory or on the order
/// of a hash table: the seed decides everything.
///
/// Readiness is reported on a change (edge-triggered), first come, first served. A closed descriptor's number is reused
/// at once, lowest first, so that the use of a stale number and a second close are detected.
final class SimulatedKernel: Kernel, @unchecked Sendable {
  private enum Kind {
    case poller
    case wakeUp
    case timer
    case link(SimulatedLink)
  }

  let faults: FaultProfile
  var random: SeededRandom
  /// Called when the client begins to connect, with the address.
  var linkOpened: ((SimulatedLink, SocketAddress) -> Void)?
  /// Called when the client sends, with the bytes that it offered and the number that the kernel accepted.
  var bytesTaken: ((SimulatedLink, [UInt8], Int) -> Void)?

  private(set) var time = seconds(1)
  private var queue = EventQueue()
  private var hosts: [(address: SocketAddress, host: Host)] = []
  private var descriptors: [Kind?] = [nil, nil, nil]
  private var hasWakeUpEdge = false
  /// The time of the timer; cleared when it expires. All timer descriptors share it.
  private var timer: UInt64?
  private var hot: [SimulatedLink] = []

  /// All links since the beginning.
  private(set) var links: [SimulatedLink] = []
  private(set) var trace = Trace()
  /// Calls that a correct client never makes.
  private(set) var offences: [String] = []
  /// Whether the latest wait had no time limit and no event will happen any more.
  private(set) var isAtRest = false
  private(set) var isWaiting = false
  private(set) var waits = 0
  /// Number of consecutive waits, without another call between them, that had no events and lasted less than a
  /// millisecond.
  private(set) var idleWaits = 0
  private(set) var idleWaitsMost = 0

  init(_ faults: FaultProfile, random: SeededRandom) {
    self.faults = faults
    self.random = random
  }

  // MARK: - The world's side

  func after(_ delay: UInt64, _ happen: @escaping () -> Void) { queue.insert(at: time + delay, happen) }
  func at(_ time: UInt64, _ happen: @escaping () -> Void) { queue.insert(at: time, happen) }
  func note(_ event: StaticString, _ number: Int, _ value: Int = 0) { trace.note(time, event, number, value) }
  func add(_ host: Host, at address: SocketAddress) { hosts.append((address, host)) }
  func host(at address: SocketAddress) -> Host? { hosts.first { $0.address == address }?.host }

  var openLinks: [SimulatedLink] {
    descriptors.compactMap { if case .link(let link)? = $0 { link } else { nil } }
  }

  func raiseEdge(_ link: SimulatedLink) {
    guard !link.hasEdge else { return }
    link.hasEdge = true
    hot.append(link)
  }

  /// Drops all future events, which would keep the world alive after its end.
  func forgetFuture() { queue.removeAll() }

  // MARK: - Time

  private func happen() {
    while let happen = queue.popDue(at: time) { happen() }
  }

  /// Advances the time by that of a system call; events that are due by then happen before the call itself.
  private func call() {
    idleWaits = 0
    time += faults.callTime
    happen()
  }

  private var isTimerDue: Bool { timer.map { $0 <= time } ?? false }
  private var hasNews: Bool { hasWakeUpEdge || isTimerDue || !hot.isEmpty }

  /// Upper bound of the simulated time. A world that is not over by then never ends.
  static let timeMax = seconds(30 * 24 * 3600)

  private func rest(until end: UInt64) {
    let end = min(end, timer ?? .max)
    while !hasNews {
      guard let next = queue.soonest, next <= end, time < Self.timeMax else {
        isAtRest = end == .max && queue.soonest == nil
        if !isAtRest { time = min(end, Self.timeMax) }
        break
      }
      time = max(time, next)
      happen()
    }
    if faults.lateness > 0, random.chance(1, of: 20) {
      time += random.time(0...faults.lateness)
      happen()
    }
  }

  private func fails() -> Bool { faults.kernelFaults > 0 && random.chance(faults.kernelFaults, of: 100) }

  // MARK: - Kernel

  func now() -> Deadline { Deadline(nanoseconds: time) }
  func date() -> Int64 { 1_780_000_000 + Int64(time / 1_000_000_000) }

  func openSocket(for address: SocketAddress) -> Int32 {
    call()
    if openLinks.count >= faults.descriptorsMax { return -Errno.tooManyDescriptors.rawValue }
    if fails() {
      return -random.pick([Errno.tooManyDescriptorsInSystem, .noBufferSpace, .familyNotSupported]).rawValue
    }
    let link = SimulatedLink(links.count, on: self)
    links.append(link)
    return open(.link(link))
  }

  func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 { 0 }
  func deferPort(_ descriptor: Int32) {}
  func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {}
  func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {}
  func shutDownSending(_ descriptor: Int32) {}
  func bind(_ descriptor: Int32, toInterface name: String) -> Int32 { 0 }
  func interfaceIndex(of name: String) -> Int32 { 1 }
  func localAddress(_ descriptor: Int32) -> SocketAddress? { .loopback(port: UInt16(1_024 + descriptor)) }

  func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    guard let link = link(descriptor, "connect") else { return -Errno.badDescriptor.rawValue }
    note("connect", link.number)
    linkOpened?(link, address)
    return link.connect(to: address).map { -$0.rawValue } ?? 0
  }

  func pendingError(_ descriptor: Int32) -> Int32 {
    guard let link = link(descriptor, "pendingError") else { return Errno.badDescriptor.rawValue }
    defer { link.pendingError = nil }
    return link.pendingError?.rawValue ?? 0
  }

  func setNoDelay(_ descriptor: Int32) { _ = link(descriptor, "setNoDelay") }

  func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    guard let link = link(descriptor, "receive") else { return -Int(Errno.badDescriptor.rawValue) }
    if buffer.freeCapacity == 0 { offences.append("a receive without room, which looks like the end") }
    if fails() { return -Int(Errno.interrupted.rawValue) }
    switch link.receive(room: buffer.freeCapacity) {
    case .success(let bytes):
      note("receive", link.number, bytes.count)
      for byte in bytes { buffer.append(byte, as: UInt8.self) }
      return bytes.count
    case .failure(let error): return -Int(error.rawValue)
    }
  }

  func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    var offered: [UInt8] = []
    queue.withSegments(atMost: 16, bytes: count) { segments in
      for segment in segments { offered.append(contentsOf: segment) }
    }
    return send(descriptor, offered: offered)
  }

  func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    var offered: [UInt8] = []
    offered.append(copying: bytes)
    return send(descriptor, offered: offered)
  }

  // These worlds have no files.
  private var noFiles: Int { -Int(Errno.badDescriptor.rawValue) }
  func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int { noFiles }
  func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int { noFiles }
  func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int { noFiles }
  func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int { noFiles }
  func openPipe() -> (reading: Int32, writing: Int32) {
    (-Errno.tooManyDescriptors.rawValue, -Errno.tooManyDescriptors.rawValue)
  }
  func splice(from source: Int32, to target: Int32, count: Int) -> Int { noFiles }

  private func send(_ descriptor: Int32, offered: [UInt8]) -> Int {
    guard let link = link(descriptor, "send") else { return -Int(Errno.badDescriptor.rawValue) }
    if fails() { return -Int(Errno.interrupted.rawValue) }
    switch link.send(offered) {
    case .success(let count):
      note("send", link.number, count)
      bytesTaken?(link, offered, count)
      return count
    case .failure(let error): return -Int(error.rawValue)
    }
  }

  func close(_ descriptor: Int32) {
    idleWaits = 0
    guard descriptors.indices.contains(Int(descriptor)), let kind = descriptors[Int(descriptor)] else {
      return offences.append("close of \(descriptor), which is not open")
    }
    descriptors[Int(descriptor)] = nil
    guard case .link(let link) = kind else { return }
    note("close", link.number)
    hot.removeAll { $0 === link }
    link.close()
  }

  func openPoller() -> Int32 { open(.poller) }

  func openWakeUp() -> Int32 { open(.wakeUp) }

  func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    switch descriptors[Int(descriptor)] {
    case .wakeUp, .timer: return 0
    default: break
    }
    guard let link = link(descriptor, "watch") else { return -Errno.badDescriptor.rawValue }
    if fails() { return -Errno.noMemory.rawValue }
    link.registration = (slot, registration)
    raiseEdge(link)
    return 0
  }

  func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    waits += 1
    isAtRest = false
    isWaiting = true
    defer { isWaiting = false }
    if fails() { return -Errno.interrupted.rawValue }
    time += faults.callTime
    let began = time
    happen()
    if milliseconds != 0, !hasNews {
      rest(until: milliseconds < 0 ? .max : time + LarkspurSimulation.milliseconds(UInt64(milliseconds)))
    }
    let list = takeEvents()
    // Another thread may run an inline tick before the loop's thread gets to its events, which may be stale by then.
    if random.chance(1, of: 4) {
      time += random.time(0...faults.callTime)
      happen()
    }
    idleWaits = list.isEmpty && time < began + LarkspurSimulation.milliseconds(1) ? idleWaits + 1 : 0
    idleWaitsMost = max(idleWaitsMost, idleWaits)
    return events.replace(with: list)
  }

  private func takeEvents() -> [PollerEvent] {
    var events: [PollerEvent] = []
    if hasWakeUpEdge {
      hasWakeUpEdge = false
      events.append(PollerEvent(slot: .max, registration: 0, isReadable: true, isWritable: false, isHungUp: false))
    }
    if isTimerDue {
      timer = nil
      events.append(
        PollerEvent(slot: PollerTimer.slot, registration: 0, isReadable: true, isWritable: false, isHungUp: false))
    }
    var taken = 0
    while taken < hot.count, events.count < faults.eventsPerWaitMax {
      let link = hot[taken]
      taken += 1
      link.hasEdge = false
      if let event = link.event() { events.append(event) }
    }
    hot.removeFirst(taken)
    return events
  }

  func wake(_ descriptor: Int32) { hasWakeUpEdge = true }

  func openTimer() -> Int32 { open(.timer) }

  func setTimer(_ descriptor: Int32, to moment: Deadline) { timer = moment.nanoseconds }

  private func open(_ kind: Kind) -> Int32 {
    // The first three descriptors are the standard streams.
    let number = descriptors.indices.dropFirst(3).first { descriptors[$0] == nil } ?? descriptors.count
    if number == descriptors.count { descriptors.append(nil) }
    descriptors[number] = kind
    return Int32(number)
  }

  private func link(_ descriptor: Int32, _ call: String) -> SimulatedLink? {
    self.call()
    guard descriptors.indices.contains(Int(descriptor)), case .link(let link)? = descriptors[Int(descriptor)] else {
      offences.append("\(call) on \(descriptor), which is no open socket")
      return nil
    }
    return link
  }
}
