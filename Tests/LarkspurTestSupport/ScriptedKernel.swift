import LarkspurBytes
import LarkspurIO
import Synchronization

/// A kernel in memory, whose network, faults and clock a test scripts.
///
/// Theory of operation. The kernel is as lazy as the real one: a peer's actions arrive only during a `wait`, one
/// arrival per socket and wait, so that a short receive always means that nothing is left. Readiness is reported on a
/// change (edge-triggered), and then with the socket's whole state at that moment, as epoll does. A closed descriptor's
/// number is reused at once, lowest first, so that the use of a stale number and a second close are detected.
///
/// A wait never blocks. A wait that was allowed to block and found nothing shows that the loop is at rest.
package final class ScriptedKernel: Kernel {
  /// The outcome of a connect. Sockets take the outcomes in order; when none is left, a connect succeeds at the next
  /// wait.
  package enum Connect: Hashable, Sendable {
    case atOnce
    case fails(Errno)
    /// In progress; ends at the next wait, with this error or with success.
    case later(Errno?)
    /// In progress, until the peer completes it.
    case never
    /// Interrupted by a signal: continues in the background, and ends at the next wait.
    case interrupted
  }

  package enum Arrival: Hashable, Sendable {
    case bytes([UInt8])
    case end
    case reset
    /// The last bytes and the end behind them, in one event.
    case bytesThenEnd([UInt8])
    /// An event without bytes or an end.
    case nothing
  }

  /// A call that configures the local end of a socket.
  package enum LocalCall: Hashable, Sendable {
    case setNoDelay
    case bindInterface(String)
    case deferPort
    case bind(SocketAddress)
    case setTrafficClass(UInt8)
    case setUnsentBytesMax(Int32)
    case shutDownSending
  }

  /// The number of calls of each kind.
  package struct Counts: Hashable, Sendable {
    package var sockets = 0
    package var connects = 0
    package var receives = 0
    package var sends = 0
    package var closes = 0
    package var watches = 0
    package var waits = 0
    package var wakes = 0
    package var timerChanges = 0
    /// Reads and writes of files.
    package var fileCopies = 0
    package var sentFiles = 0
    package var splices = 0
  }

  struct Socket {
    var connect = Connect.later(nil)
    var isConnected = false
    var isConnectReported = false
    var pendingError: Int32 = 0
    var address = SocketAddress.loopback(port: 0)
    var local: [LocalCall] = []
    var slot: UInt32?
    var registration: UInt32 = 0
    var hasEdge = false
    var isOpen = true
    var wasOpened = false

    var arrivals: [Arrival] = []
    var received: [UInt8] = []
    var receivedOffset = 0
    var hasEnded = false
    var isReset = false
    var receiveFaults: [Errno] = []

    var sent: [UInt8] = []
    var sendRoom = Int.max
    var sendBytesMax = Int.max
    var sendFaults: [Errno] = []

    var unread: Int { received.count - receivedOffset }
  }

  enum Kind {
    case poller
    case wakeUp(hasEdge: Bool)
    /// The moment at which the timer expires.
    case timer(Deadline)
    case socket(Int)
    case file(Int)
    /// One end of a pipe; both ends have its number.
    case pipe(Int)
  }

  struct State {
    var now = Deadline(nanoseconds: 1_000_000_000)
    var sockets: [Socket] = []
    var descriptors: [Int32: Kind] = [:]
    var connects: [Connect] = []
    var socketFaults: [Errno] = []
    var bindFaults: [Errno] = []
    var interfaces: [String: Int32] = [:]
    var watchFaults: [Errno] = []
    var waitFaults: [Errno] = []
    var extraEvents: [PollerEvent] = []
    var files: [File] = []
    /// The contents of each pipe.
    var pipes: [[UInt8]] = []
    var pipeFaults: [Errno] = []
    var pipeBytesMax = 1 << 20
    var counts = Counts()
    var calls = 0
    var isAtRest = false
    var waitMilliseconds: Int32 = 0
    /// Calls that a correct client never makes: those with a descriptor that is not open.
    var offences: [String] = []
  }

  /// Performance: a closure that is a lock's only content would be wrapped anew at each access.
  private struct Hooks {
    var beforeCalls: (@Sendable (Int) -> Void)?
  }

  private let state = Mutex(State())
  private let hooks = Mutex(Hooks())
  fileprivate static let firstDescriptor: Int32 = 3

  package init() {}

  func with<R>(_ body: (inout State) -> sending R) -> sending R { state.withLock { body(&$0) } }

  // MARK: - The test's side

  package var counts: Counts { with { $0.counts } }
  package var offences: [String] { with { $0.offences } }
  package var openDescriptors: Int { with { $0.descriptors.count } }
  package var openSockets: Int { with { state in state.sockets.count { $0.isOpen } } }
  /// Number of calls so far, without those that read the clock.
  package var calls: Int { with { $0.calls } }
  /// Whether the latest wait was allowed to block and had nothing to report.
  package var isAtRest: Bool { with { $0.isAtRest } }
  /// Timeout of the latest wait in milliseconds; -1 if it had none.
  package var waitMilliseconds: Int32 { with { $0.waitMilliseconds } }
  package var socketCount: Int { with { $0.sockets.count } }

  package func advance(by duration: Duration) { with { $0.now = $0.now.advanced(by: duration) } }
  package func willConnect(_ outcomes: Connect...) { with { $0.connects += outcomes } }
  package func willFailToOpenSocket(_ errors: Errno...) { with { $0.socketFaults += errors } }
  package func willFailToBind(_ errors: Errno...) { with { $0.bindFaults += errors } }
  package func addInterface(_ name: String, index: Int32) { with { $0.interfaces[name] = index } }
  package func willFailToWatch(_ errors: Errno...) { with { $0.watchFaults += errors } }
  package func willFailToWait(_ errors: Errno...) { with { $0.waitFaults += errors } }
  /// Adds events to the next wait's, whatever the sockets' state is.
  package func report(_ events: PollerEvent...) { with { $0.extraEvents += events } }

  /// Sets a closure that runs before each call except the clock's, with the call's number.
  package func beforeCalls(_ hook: (@Sendable (Int) -> Void)?) { hooks.withLock { $0.beforeCalls = hook } }

  /// Returns the peer of the socket that is opened as the `index`th, from 0. The socket need not be open yet.
  package func peer(_ index: Int = 0) -> ScriptedPeer { ScriptedPeer(kernel: self, index: index) }

  func withSocket<R>(_ index: Int, _ body: (inout Socket) -> sending R) -> sending R {
    with { state in
      while state.sockets.count <= index { state.sockets.append(Socket(isOpen: false)) }
      return body(&state.sockets[index])
    }
  }

  // MARK: - Kernel

  package func now() -> Deadline { with { $0.now } }

  /// Returns a fixed day in 2026.
  package func date() -> Int64 { 1_780_000_000 }

  package func openSocket(for address: SocketAddress) -> Int32 {
    called()
    return with { state in
      state.counts.sockets += 1
      if !state.socketFaults.isEmpty { return -state.socketFaults.removeFirst().rawValue }
      // Tests may prepare peers before their socket is opened.
      let index = state.opened
      if index == state.sockets.count { state.sockets.append(Socket(isOpen: false)) }
      state.sockets[index].isOpen = true
      state.sockets[index].wasOpened = true
      state.sockets[index].address = address
      if !state.connects.isEmpty { state.sockets[index].connect = state.connects.removeFirst() }
      return state.open(.socket(index))
    }
  }

  package func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 { bind(descriptor, .bind(address)) }

  package func bind(_ descriptor: Int32, toInterface name: String) -> Int32 { bind(descriptor, .bindInterface(name)) }

  private func bind(_ descriptor: Int32, _ call: LocalCall) -> Int32 {
    called()
    return with { state in
      if !state.bindFaults.isEmpty { return -state.bindFaults.removeFirst().rawValue }
      return state.withSocket(descriptor, "bind", else: -Errno.badDescriptor.rawValue) { socket in
        socket.local.append(call)
        return 0
      }
    }
  }

  package func deferPort(_ descriptor: Int32) {
    called()
    with { state in state.withSocket(descriptor, "deferPort", else: ()) { $0.local.append(.deferPort) } }
  }

  package func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {
    called()
    with { state in
      state.withSocket(descriptor, "setUnsentBytesMax", else: ()) { $0.local.append(.setUnsentBytesMax(count)) }
    }
  }

  package func shutDownSending(_ descriptor: Int32) {
    called()
    with { state in
      state.withSocket(descriptor, "shutDownSending", else: ()) { $0.local.append(.shutDownSending) }
    }
  }

  package func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {
    called()
    with { state in
      state.withSocket(descriptor, "setTrafficClass", else: ()) { $0.local.append(.setTrafficClass(trafficClass)) }
    }
  }

  package func interfaceIndex(of name: String) -> Int32 {
    called()
    return with { $0.interfaces[name] ?? -Errno.noSuchDevice.rawValue }
  }

  package func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    called()
    return with { state in
      state.counts.connects += 1
      return state.withSocket(descriptor, "connect", else: -Errno.badDescriptor.rawValue) { socket in
        switch socket.connect {
        case .atOnce:
          socket.isConnected = true
          return 0
        case .fails(let error): return -error.rawValue
        case .later, .never: return -Errno.inProgress.rawValue
        case .interrupted: return -Errno.interrupted.rawValue
        }
      }
    }
  }

  package func pendingError(_ descriptor: Int32) -> Int32 {
    called()
    return with { state in
      state.withSocket(descriptor, "pendingError", else: Errno.badDescriptor.rawValue) { socket in
        defer { socket.pendingError = 0 }
        return socket.pendingError
      }
    }
  }

  package func setNoDelay(_ descriptor: Int32) {
    called()
    with { state in state.withSocket(descriptor, "setNoDelay", else: ()) { $0.local.append(.setNoDelay) } }
  }

  package func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    called()
    let room = buffer.freeCapacity
    let (result, bytes): (Int, [UInt8]) = with { state in
      state.counts.receives += 1
      if room == 0 { state.offences.append("a receive without room, which looks like the end") }
      return state.take(from: descriptor, room, "receive")
    }
    for byte in bytes { buffer.append(byte, as: UInt8.self) }
    return result
  }

  package func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    var offered: [UInt8] = []
    queue.withSegments(atMost: 16, bytes: count) { segments in
      for segment in segments { offered.append(contentsOf: segment) }
    }
    return send(descriptor, offered: offered)
  }

  package func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    var offered: [UInt8] = []
    offered.append(copying: bytes)
    return send(descriptor, offered: offered)
  }

  func send(_ descriptor: Int32, offered: [UInt8]) -> Int {
    called()
    return with { state in
      state.counts.sends += 1
      return state.withSocket(descriptor, "send", else: -Int(Errno.badDescriptor.rawValue)) { socket in
        if !socket.sendFaults.isEmpty {
          let error = socket.sendFaults.removeFirst()
          if error == .wouldBlock { socket.hasEdge = true }
          return -Int(error.rawValue)
        }
        if socket.isReset { return -Int(Errno.connectionReset.rawValue) }
        let count = min(offered.count, socket.sendRoom, socket.sendBytesMax)
        guard count > 0 else { return -Int(Errno.wouldBlock.rawValue) }
        socket.sent.append(contentsOf: offered[..<count])
        if socket.sendRoom != .max { socket.sendRoom -= count }
        return count
      }
    }
  }

  package func close(_ descriptor: Int32) {
    called()
    with { state in
      state.counts.closes += 1
      switch state.descriptors.removeValue(forKey: descriptor) {
      case .socket(let index):
        state.sockets[index].isOpen = false
        state.sockets[index].slot = nil
      case .poller, .wakeUp, .timer, .file, .pipe: break
      case nil: state.offences.append("close of \(descriptor), which is not open")
      }
    }
  }

  package func openPoller() -> Int32 { with { $0.open(.poller) } }

  package func openWakeUp() -> Int32 { with { $0.open(.wakeUp(hasEdge: false)) } }

  package func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    called()
    return with { state in
      state.counts.watches += 1
      switch state.descriptors[descriptor] {
      case .wakeUp, .timer: return 0
      default: break
      }
      if !state.watchFaults.isEmpty { return -state.watchFaults.removeFirst().rawValue }
      return state.withSocket(descriptor, "watch", else: -Errno.badDescriptor.rawValue) { socket in
        socket.slot = slot
        socket.registration = registration
        socket.hasEdge = true
        return 0
      }
    }
  }

  package func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    called()
    let list: Result<[PollerEvent], Errno> = with { state in
      state.counts.waits += 1
      state.isAtRest = false
      if !state.waitFaults.isEmpty { return .failure(state.waitFaults.removeFirst()) }
      let list = state.takeEvents()
      state.isAtRest = list.isEmpty && milliseconds != 0
      state.waitMilliseconds = milliseconds < 0 ? state.timerExpiry.timeoutMilliseconds(from: state.now) : milliseconds
      return .success(list)
    }
    switch list {
    case .success(let list): return events.replace(with: list)
    case .failure(let error): return -error.rawValue
    }
  }

  package func wake(_ descriptor: Int32) {
    called()
    with { state in
      state.counts.wakes += 1
      guard case .wakeUp = state.descriptors[descriptor] else {
        return state.offences.append("a wake-up of \(descriptor), which is not open")
      }
      state.descriptors[descriptor] = .wakeUp(hasEdge: true)
    }
  }

  package func openTimer() -> Int32 { with { $0.open(.timer(.never)) } }

  package func setTimer(_ descriptor: Int32, to moment: Deadline) {
    called()
    with { state in
      state.counts.timerChanges += 1
      guard case .timer = state.descriptors[descriptor] else {
        return state.offences.append("setting \(descriptor), which is no open timer")
      }
      state.descriptors[descriptor] = .timer(moment)
    }
  }

  func called() {
    let number = with { state in
      state.calls += 1
      return state.calls
    }
    // Called without a lock, because the hook may make the loop call this kernel.
    hooks.withLock { $0.beforeCalls }?(number)
  }
}

extension ScriptedKernel.State {
  /// Number of sockets that have been opened.
  var opened: Int { sockets.count { $0.wasOpened } }

  /// The moment at which the next timer expires.
  fileprivate var timerExpiry: Deadline {
    descriptors.values.map { if case .timer(let moment) = $0 { moment } else { .never } }.min() ?? .never
  }

  mutating func open(_ kind: ScriptedKernel.Kind) -> Int32 {
    var number = ScriptedKernel.firstDescriptor
    while descriptors[number] != nil { number += 1 }
    descriptors[number] = kind
    return number
  }

  mutating func withSocket<R>(
    _ descriptor: Int32, _ call: String, else failure: R, _ body: (inout ScriptedKernel.Socket) -> R
  ) -> R {
    guard case .socket(let index) = descriptors[descriptor] else {
      offences.append("\(call) on \(descriptor), which is no open socket")
      return failure
    }
    return body(&sockets[index])
  }

  /// Takes received bytes.
  ///
  /// - Returns: Their number and the bytes, or a negated error number.
  mutating func take(from descriptor: Int32, _ room: Int, _ call: String) -> (Int, [UInt8]) {
    withSocket(descriptor, call, else: (-Int(Errno.badDescriptor.rawValue), [])) { socket in
      if !socket.receiveFaults.isEmpty {
        let error = socket.receiveFaults.removeFirst()
        // The missing bytes will arrive, and be reported.
        if error == .wouldBlock { socket.hasEdge = true }
        return (-Int(error.rawValue), [])
      }
      let count = min(room, socket.unread)
      if count > 0 {
        let bytes = Array(socket.received[socket.receivedOffset..<socket.receivedOffset + count])
        socket.receivedOffset += count
        if socket.unread == 0 {
          socket.received.removeAll()
          socket.receivedOffset = 0
        }
        return (count, bytes)
      }
      if socket.isReset {
        socket.isReset = false
        return (-Int(Errno.connectionReset.rawValue), [])
      }
      return (socket.hasEnded ? 0 : -Int(Errno.wouldBlock.rawValue), [])
    }
  }

  fileprivate mutating func takeEvents() -> [PollerEvent] {
    var events: [PollerEvent] = []
    for (descriptor, kind) in descriptors {
      let slot: UInt32
      switch kind {
      case .wakeUp(hasEdge: true): (slot, descriptors[descriptor]) = (.max, .wakeUp(hasEdge: false))
      case .timer(let moment) where moment <= now: (slot, descriptors[descriptor]) = (PollerTimer.slot, .timer(.never))
      default: continue
      }
      events.append(PollerEvent(slot: slot, registration: 0, isReadable: true, isWritable: false, isHungUp: false))
    }
    for index in sockets.indices where sockets[index].isOpen {
      sockets[index].arrive()
      guard let event = sockets[index].takeEvent() else { continue }
      events.append(event)
    }
    events += extraEvents
    extraEvents = []
    return events
  }
}

extension ScriptedKernel.Socket {
  /// Performs one step of the network's script.
  fileprivate mutating func arrive() {
    if !isConnected {
      switch connect {
      case .later(let error):
        isConnected = true
        pendingError = error?.rawValue ?? 0
        hasEdge = true
        if error != nil { hasEnded = true }
      case .interrupted:
        isConnected = true
        hasEdge = true
      case .atOnce, .never, .fails: break
      }
      return
    }
    guard !arrivals.isEmpty else { return }
    hasEdge = true
    switch arrivals.removeFirst() {
    case .bytes(let bytes): received.append(contentsOf: bytes)
    case .end: hasEnded = true
    case .bytesThenEnd(let bytes):
      received.append(contentsOf: bytes)
      hasEnded = true
    case .reset:
      hasEnded = true
      isReset = true
      sendFaults.append(.brokenPipe)
    case .nothing: break
    }
  }

  fileprivate mutating func takeEvent() -> PollerEvent? {
    guard hasEdge, let slot, isConnected else { return nil }
    hasEdge = false
    let isReadable = unread > 0 || hasEnded
    // A new connection is writable, whatever follows; a socket that has failed is ready for everything (EPOLLERR).
    let isWritable = sendRoom > 0 || !isConnectReported || pendingError != 0 || isReset
    isConnectReported = true
    guard isReadable || isWritable else { return nil }
    return PollerEvent(
      slot: slot, registration: registration, isReadable: isReadable, isWritable: isWritable, isHungUp: hasEnded)
  }
}

/// The remote end of a scripted socket.
package struct ScriptedPeer: Sendable {
  let kernel: ScriptedKernel
  let index: Int

  /// Sends pieces, each of which arrives in a wait of its own.
  package func send(_ pieces: [UInt8]...) { arrive(pieces.map { .bytes($0) }) }
  package func send(_ text: String) { arrive([.bytes(Array(text.utf8))]) }
  package func close() { arrive([.end]) }
  package func reset() { arrive([.reset]) }
  /// Closes at once and without an event, as if between the last wait and a request.
  package func closeUnnoticed() { kernel.withSocket(index) { $0.hasEnded = true } }
  package func arrive(_ arrivals: [ScriptedKernel.Arrival]) {
    kernel.withSocket(index) { $0.arrivals += arrivals }
  }

  /// The bytes that the client has sent so far.
  package var received: [UInt8] { kernel.withSocket(index) { $0.sent } }
  package var receivedText: String { String(decoding: received, as: UTF8.self) }
  package var isOpen: Bool { kernel.withSocket(index) { $0.isOpen } }
  /// The calls that configured the client's end, in order.
  package var localCalls: [ScriptedKernel.LocalCall] { kernel.withSocket(index) { $0.local } }
  /// Number of bytes that have arrived at the client's kernel, or will, and that the client has not received.
  package var unfetched: Int {
    kernel.withSocket(index) { socket in
      socket.unread
        + socket.arrivals.reduce(0) { sum, arrival in
          switch arrival {
          case .bytes(let bytes), .bytesThenEnd(let bytes): sum + bytes.count
          case .end, .reset, .nothing: sum
          }
        }
    }
  }

  /// Whether a receive would return bytes, the end or an error.
  package var isReadable: Bool {
    kernel.withSocket(index) { $0.isOpen && $0.isConnected && ($0.unread > 0 || $0.hasEnded) }
  }

  /// The slot and the registration with which the socket is watched.
  package var token: (slot: UInt32, registration: UInt32)? {
    kernel.withSocket(index) { socket in socket.slot.map { ($0, socket.registration) } }
  }

  /// Makes the kernel accept this many bytes, and then none until there is room again.
  package func setSendRoom(_ bytes: Int) {
    kernel.withSocket(index) { socket in
      if socket.sendRoom == 0, bytes > 0 { socket.hasEdge = true }
      socket.sendRoom = bytes
    }
  }

  /// Sets the maximum number of bytes that the kernel accepts in one call.
  package func setSendBytesMax(_ bytes: Int) { kernel.withSocket(index) { $0.sendBytesMax = bytes } }
  package func willFailToSend(_ errors: Errno...) { kernel.withSocket(index) { $0.sendFaults += errors } }
  package func willFailToReceive(_ errors: Errno...) { kernel.withSocket(index) { $0.receiveFaults += errors } }

  /// Ends a connect that is in progress.
  package func completeConnect(_ error: Errno? = nil) { kernel.withSocket(index) { $0.connect = .later(error) } }
}
