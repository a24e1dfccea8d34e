import LarkspurIO

/// A TCP connection: the client's socket, the bytes in transit, and the server's session.
///
/// Bytes arrive in the order in which they were sent, in segments cut at random. Both directions hold a bounded number
/// of bytes. The client's end behaves as on Linux: bytes that have arrived can be read after a reset, an error is
/// reported once, and closing a socket with unread bytes resets the connection.
final class SimulatedLink {
  enum State {
    case fresh
    case connecting
    case connected
    /// The connection was reset or refused, or has timed out.
    case broken
  }

  let number: Int
  private unowned let kernel: SimulatedKernel
  private(set) var address: SocketAddress?
  private var random: SeededRandom

  // The client's end.
  private(set) var state = State.fresh
  private var isConnectReported = false
  var pendingError: Errno?
  private var received: [UInt8] = []
  private var receivedOffset = 0
  /// The end of the server's stream has arrived, in order.
  private var endArrived = false
  private var hasEnded: Bool { endArrived || state == .broken }
  private(set) var isClosed = false
  /// Number of bytes sent by the client that the server has not read yet.
  private var unacknowledged = 0
  private var waitsForRoom = false
  var registration: (slot: UInt32, number: UInt32)?
  var hasEdge = false

  // In transit.
  private var lastAtServer: UInt64 = 0
  private var lastAtClient: UInt64 = 0
  private var onTheWay = 0
  private var isCut = false

  // The server's end.
  private(set) var session: ServerSession?
  private(set) var hasSentEnd = false

  // For the checks.
  /// Number of the server's bytes that have arrived; `reported` is the number of those at the last event.
  private var arrived = 0
  private(set) var reported = 0
  /// The latest request that began on this connection.
  var latestRequest: Int?
  /// Number of bytes that are missing of the request that is being sent.
  var requestBytesLeft = 0

  init(_ number: Int, on kernel: SimulatedKernel) {
    self.number = number
    self.kernel = kernel
    random = kernel.random.fork()
  }

  private var faults: FaultProfile { kernel.faults }
  private var unread: Int { received.count - receivedOffset }
  var isReadable: Bool { unread > 0 || hasEnded || pendingError != nil }
  private var room: Int { faults.sendBufferBytes - unacknowledged }

  // MARK: - The client's calls

  func connect(to address: SocketAddress) -> Errno? {
    self.address = address
    guard let host = kernel.host(at: address) else { return .hostUnreachable }
    let isFaulty = random.chance(faults.connectFaults, of: 100)
    let fault = isFaulty ? random.number(0...4) : -1
    if fault == 0 { return random.pick([.networkUnreachable, .addressNotAvailable, .noMemory]) }
    state = .connecting
    switch fault {
    // There is no answer; the kernel gives up after two minutes.
    case 1: kernel.after(seconds(127)) { [self] in broke(.timedOut) }
    case 2: toServer { [self] in toClient { [self] in broke(random.pick([.connectionRefused, .hostUnreachable])) } }
    default:
      let isReset = fault == 3
      toServer { [self] in
        guard !isClosed else { return }
        let session = ServerSession(host, over: self, random: random.fork())
        toClient { [self] in becameConnected() }
        if isReset { return resetToClient() }
        self.session = session
        session.began()
      }
    }
    return random.chance(faults.kernelFaults, of: 100) ? .interrupted : .inProgress
  }

  private func becameConnected() {
    guard state == .connecting, !isClosed else { return }
    state = .connected
    kernel.raiseEdge(self)
    guard random.chance(faults.cuts, of: 100) else { return }
    kernel.after(random.time(0...random.pick([milliseconds(100), seconds(60)]))) { [self] in beCut() }
  }

  /// Cuts the connection: nothing arrives at either end any more, and the client's kernel reports it after a while.
  private func beCut() {
    kernel.note("cut", number)
    isCut = true
    session?.ended()
    kernel.after(seconds(random.time(30...900))) { [self] in broke(.timedOut) }
  }

  func receive(room: Int) -> Result<ArraySlice<UInt8>, Errno> {
    if unread > 0 {
      let count = min(room, unread)
      let bytes = received[receivedOffset..<receivedOffset + count]
      receivedOffset += count
      if unread == 0 {
        received = []
        receivedOffset = 0
      }
      toServer { [self] in
        onTheWay -= count
        session?.roomWasMade()
      }
      return .success(bytes)
    }
    // An end that came before a reset stays an end.
    if endArrived { return .success([]) }
    if let error = pendingError {
      pendingError = nil
      return .failure(error)
    }
    return hasEnded ? .success([]) : .failure(.wouldBlock)
  }

  func send(_ offered: [UInt8]) -> Result<Int, Errno> {
    if let error = pendingError {
      pendingError = nil
      return .failure(error)
    }
    guard state == .connected else { return .failure(state == .broken ? .brokenPipe : .notConnected) }
    let count = min(offered.count, room)
    if count < offered.count { waitsForRoom = true }
    guard count > 0 else { return .failure(.wouldBlock) }
    unacknowledged += count
    var sent = 0
    while sent < count {
      let bytes = Array(offered[sent..<min(count, sent + random.number(faults.segmentBytes))])
      sent += bytes.count
      toServer { [self] in arriveAtServer(bytes) }
    }
    return .success(count)
  }

  private func arriveAtServer(_ bytes: [UInt8]) {
    guard let session, session.isOpen else { return resetToClient() }
    session.received(bytes)
  }

  func close() {
    isClosed = true
    let isOrderly = unread == 0
    received = []
    receivedOffset = 0
    toServer { [self] in isOrderly ? session?.endReceived() : session?.ended() }
  }

  /// Returns the event for the socket's present state, or `nil` if there is nothing to report.
  func event() -> PollerEvent? {
    guard let registration, !isClosed, state == .connected || state == .broken else { return nil }
    let isBroken = state == .broken
    // A new connection is writable, however small its buffer is.
    let isWritable = room > 0 || !isConnectReported || isBroken
    isConnectReported = true
    guard isReadable || isWritable else { return nil }
    reported = arrived
    return PollerEvent(
      slot: registration.slot, registration: registration.number, isReadable: isReadable, isWritable: isWritable,
      isHungUp: hasEnded || isBroken)
  }

  // MARK: - The server's calls

  /// Number of bytes that the server may send at present.
  var roomToClient: Int { faults.receiveWindowBytes - onTheWay }

  func sendToClient(_ bytes: [UInt8]) {
    onTheWay += bytes.count
    toClient { [self] in
      arrived += bytes.count
      guard !isClosed else { return session?.ended() ?? () }
      received += bytes
      kernel.raiseEdge(self)
    }
  }

  /// Draws the size of one segment.
  func segmentBytes() -> Int { random.number(faults.segmentBytes) }

  func endToClient() {
    hasSentEnd = true
    toClient { [self] in
      endArrived = true
      kernel.raiseEdge(self)
    }
  }

  func resetToClient() { toClient { [self] in broke(.connectionReset) } }

  /// Reports to the client's end that the server has read `count` bytes.
  func acknowledge(_ count: Int) {
    toClient { [self] in
      unacknowledged -= count
      guard waitsForRoom else { return }
      waitsForRoom = false
      kernel.raiseEdge(self)
    }
  }

  // MARK: - In transit

  private func broke(_ error: Errno) {
    guard state != .broken, !isClosed else { return }
    kernel.note("broken", number, Int(error.rawValue))
    state = .broken
    pendingError = endArrived ? .brokenPipe : error
    session?.ended()
    kernel.raiseEdge(self)
  }

  private func toServer(_ arrive: @escaping () -> Void) {
    lastAtServer = max(lastAtServer, kernel.time + random.time(faults.latency))
    kernel.at(lastAtServer) { [self] in if !isCut { arrive() } }
  }

  private func toClient(_ arrive: @escaping () -> Void) {
    lastAtClient = max(lastAtClient, kernel.time + random.time(faults.latency))
    kernel.at(lastAtClient) { [self] in if !isCut { arrive() } }
  }
}
