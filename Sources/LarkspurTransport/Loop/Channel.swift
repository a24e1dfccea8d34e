import LarkspurBytes
import LarkspurIO

/// An observer of an idle channel: it is called when there is something to read and no subscriber waits for the
/// channel.
protocol ChannelWatcher: AnyObject {
  func becameReadable()
}

/// A socket on a loop: its readiness, the task or callback that waits for it, and the deadline of that wait.
///
/// The kernel reports each change once (edge-triggered), so the channel stores readiness until a call shows that it is
/// used up. A channel belongs to the thread that ticks its loop.
public final class Channel {
  /// Why a wait ended before the socket was ready.
  enum Interruption: Error {
    case timedOut
    case cancelled
    /// Another subscriber waits already, and a channel can wake only one. The earlier wait is not affected.
    case busy
  }

  /// A use of the channel, and the target of a cancellation. A cancellation that arrives after its use has ended is
  /// ignored, so that it does not end the next use.
  enum Use: Hashable {
    /// The exchange with this number.
    case exchange(UInt64)
    /// All waits between `startScope` and `endScope`.
    case scope(UInt64)
  }

  public let loop: ClientLoop
  public let address: SocketAddress
  private let socket: ClientSocket
  private var slot: UInt32 = 0
  private var registration: UInt32 = 0

  private(set) var isReadable = false
  private(set) var isWritable = false
  /// Whether the peer has closed its side or the connection broke. A short read then does not mean that all has been
  /// read.
  private var isHungUp = false

  /// Called once, when the kernel reports the outcome of the connect.
  var connectAnswered: (() -> Void)?

  /// The subscriber to readiness.
  private enum Subscriber {
    case none
    case task(TaskContinuation)
    case callback(any LoopCallback)
  }

  private var subscriber = Subscriber.none
  /// Called when there is something to read and no subscriber waits for it.
  var watcher: (any ChannelWatcher)?
  private var readInterest = true
  private var writeInterest = false
  /// The number of the latest exchange.
  private var exchange: UInt64 = 0
  /// The numbers of the scopes that have begun and not ended.
  private var scopes: [UInt64] = []
  /// The number of scopes that have begun so far.
  private var scopesStarted: UInt64 = 0
  private var cancelledExchange: UInt64?
  /// The outermost cancelled scope that has not ended.
  private var cancelledScope: UInt64?

  /// Whether a cancellation or a deadline has occurred since the exchange began. The use that it was meant for may be
  /// over: `interruption` checks that.
  private var mayBeInterrupted = false
  private var isUnsentLimited = false

  private var deadline = Deadline.never
  /// The soonest deadline that this channel has in the loop's heap. When it expires and the channel's own deadline is
  /// later, the channel inserts the later one.
  private(set) var deadlineEntry = Deadline.never
  /// The time at which a wait ends without an error.
  private var wakeUpTime = Deadline.never

  /// The error with which the connection broke, if a sending call has got the kernel's report.
  ///
  /// The kernel reports the cause once. From then on a send fails with a broken pipe, and a receive returns what arrived
  /// before, and then the end of the stream, as after an orderly end.
  private var loss: Errno?

  private var receivingTick: UInt64 = 0
  private var receivedInTick = 0
  private var sendingTick: UInt64 = 0
  private var sentInTick = 0
  /// A channel's share of a tick, in bytes for each direction. The last call may exceed it, so each tick makes at least
  /// one call.
  static let tickBytesMax = 256 * 1024

  init(to address: SocketAddress, usingMultipath: Bool = false, on loop: ClientLoop) throws(Errno) {
    self.loop = loop
    self.address = address
    let socket = try ClientSocket(for: address, usingMultipath: usingMultipath, kernel: loop.kernel)
    self.socket = consume socket
    (slot, registration) = loop.register(self)
  }

  private(set) var isOpen = true

  var localAddress: SocketAddress? { socket.localAddress }
  var isMultipath: Bool { socket.isMultipath }

  /// Removes the channel from its loop and wakes the subscriber, which finds the channel closed. The descriptor is
  /// closed when the last reference to the channel is released; the loop releases its own here.
  public func close() {
    guard isOpen else { return }
    isOpen = false
    loop.deregister(slot: slot)
    wakeSubscriber()
  }

  /// Closes the channel from any thread.
  func abandon() {
    if loop.isCurrent { close() } else { loop.post(abandoned: self) }
  }

  // MARK: - Calls

  /// Binds the socket to a local address or interface, before `connect`.
  ///
  /// - Returns: The error, or `nil` if the socket is bound.
  func bind(to local: LocalEndpoint) -> Errno? {
    do throws(Errno) {
      try socket.bind(to: local)
      return nil
    } catch {
      return error
    }
  }

  /// Starts to connect.
  ///
  /// - Returns: `true` if the channel is connected; `false` if the caller has to wait for `isWritable` and then call
  ///   `finishConnecting`.
  func connect() throws(Errno) -> Bool {
    let isConnected = try socket.connect(to: address)
    try loop.watch(socket.descriptor, (slot, registration))
    return isConnected
  }

  /// Throws the error that the connect failed with. Call it after the wait for `isWritable`.
  ///
  /// Performance: a failed socket is reported readable and writable (EPOLLERR). A socket that is only writable is
  /// connected, so this needs no system call.
  func finishConnecting() throws(Errno) {
    if isReadable || !isWritable { try socket.finishConnecting() }
  }

  /// Makes the next receive call the kernel, although no event has reported input.
  func expectInput() { isReadable = true }

  /// Receives once, and updates `isReadable`.
  ///
  /// - Throws: The kernel's error. An end of the stream after an error that a sending call has got is that error.
  func receive(into chunk: inout Chunk) throws(Errno) -> ClientSocket.Received {
    let received = try socket.receive(into: &chunk)
    switch received {
    case .bytes(let count, let drained):
      // The kernel raises a new event for bytes that arrive from now on. It does not report an end of the stream again.
      if drained, !isHungUp { isReadable = false }
      countReceived(count)
    case .wouldBlock: isReadable = false
    case .endOfStream: if let loss { throw loss }
    }
    return received
  }

  /// Makes a sending call, and notes its error. A later broken pipe has the cause as its error.
  @inline(__always)
  private func sending(_ call: () throws(Errno) -> Bool) throws(Errno) -> Bool {
    do throws(Errno) {
      return try call()
    } catch {
      if !error.followsOrderlyEnd { loss = loss ?? error }
      throw loss ?? error
    }
  }

  /// Limits the unsent bytes that the kernel buffers from now on: see `ClientSocket.limitUnsent`.
  func limitUnsent() {
    guard !isUnsentLimited else { return }
    isUnsentLimited = true
    socket.limitUnsent()
  }

  /// Sends as many bytes as the kernel takes.
  ///
  /// - Returns: `true` if all of the queue has been sent.
  func send(_ queue: inout ByteQueue) throws(Errno) -> Bool {
    let count = queue.byteCount
    isWritable = try sending { () throws(Errno) in try socket.send(&queue) }
    countSent(count - queue.byteCount)
    return isWritable
  }

  /// Sends as many bytes as the kernel takes.
  ///
  /// - Returns: `true` if all of the chunk has been sent.
  func send(_ chunk: inout Chunk) throws(Errno) -> Bool {
    let count = chunk.count
    isWritable = try sending { () throws(Errno) in try socket.send(&chunk) }
    countSent(count - chunk.count)
    return isWritable
  }

  /// Sends as many bytes as the kernel takes, and at most `limit`.
  ///
  /// - Returns: `true` if all of the queue has been sent.
  func send(_ queue: inout ByteQueue, atMost limit: Int) throws(Errno) -> Bool {
    guard limit > 0 else { return queue.isEmpty }
    let count = queue.byteCount
    isWritable = try sending { () throws(Errno) in try socket.send(&queue, atMost: limit) }
    countSent(count - queue.byteCount)
    return queue.isEmpty
  }

  /// Sends once from a file.
  ///
  /// - Returns: The number of bytes sent: 0 at the end of the file, `nil` if the kernel takes no more for now.
  func sendFile(_ file: OpenFile, at offset: Int, count: Int) throws(Errno) -> Int? {
    let sent: Int?
    do throws(Errno) {
      sent = try socket.sendFile(file, at: offset, count: count)
    } catch {
      if error.isConnectionLoss { loss = loss ?? error }
      throw error
    }
    if let sent { countSent(sent) } else { isWritable = false }
    return sent
  }

  /// Moves bytes once from the socket into the pipe, which is empty, and updates `isReadable`.
  func fill(_ pipe: Pipe, atMost limit: Int) throws(Errno) -> ClientSocket.Received {
    let received = try pipe.fill(from: socket, atMost: limit)
    switch received {
    case .bytes(let count, _): countReceived(count)
    case .wouldBlock: isReadable = false
    case .endOfStream: if let loss { throw loss }
    }
    return received
  }

  /// Ends the sending side: the peer receives the end of the stream.
  func closeSending() { socket.closeSending() }

  private func countReceived(_ count: Int) {
    if receivingTick != loop.tickNumber {
      receivingTick = loop.tickNumber
      receivedInTick = 0
    }
    receivedInTick += count
  }

  private func countSent(_ count: Int) {
    if sendingTick != loop.tickNumber {
      sendingTick = loop.tickNumber
      sentInTick = 0
    }
    sentInTick += count
  }

  /// The number of bytes that may still be sent in this tick.
  var sendingShare: Int { sendingTick == loop.tickNumber ? max(Self.tickBytesMax - sentInTick, 0) : Self.tickBytesMax }

  // MARK: - Waiting

  /// Suspends until the socket may be readable (if `reading`) or writable (if `writing`). If the channel has used up
  /// its share of this tick, it suspends until the next tick.
  func wait(reading: Bool = true, writing: Bool) async throws(Interruption) {
    guard try mustWait(reading: reading, writing: writing) else { return }
    await TaskContinuation.suspend { subscriber = .task($0) }
    if mayBeInterrupted, let interruption { throw interruption }
  }

  /// Subscribes a callback to the events that `wait(reading:writing:)` waits for.
  ///
  /// - Returns: `false` if there is nothing to wait for: the callback is not subscribed.
  func wait(reading: Bool = true, writing: Bool, with callback: any LoopCallback) throws(Interruption) -> Bool {
    guard try mustWait(reading: reading, writing: writing) else { return false }
    subscriber = .callback(callback)
    return true
  }

  @inline(__always)
  private func mustWait(reading: Bool, writing: Bool) throws(Interruption) -> Bool {
    if reading && isReadable && hasSpentTick || writing && isWritable && sendingShare == 0 {
      loop.yield(self)
    } else if reading && isReadable || writing && isWritable || !isOpen {
      return false
    }
    // A second subscriber would replace the first one, which would then never be woken.
    guard case .none = subscriber else { throw .busy }
    if mayBeInterrupted, let interruption { throw interruption }
    readInterest = reading
    writeInterest = writing
    return true
  }

  /// The reason to end a wait early now, or `nil` if there is none.
  private var interruption: Interruption? {
    if cancelledScope != nil || cancelledExchange == exchange { return .cancelled }
    return deadline <= loop.now ? .timedOut : nil
  }

  /// Starts an exchange. Drops a cancellation of the exchange before, which arrived too late.
  func start(exchange: UInt64, deadline: Deadline) {
    cancelledExchange = nil
    mayBeInterrupted = cancelledScope != nil
    self.exchange = exchange
    setDeadline(deadline)
  }

  /// Starts a scope: all waits up to its end can be cancelled together.
  func startScope() -> Use {
    scopesStarted += 1
    scopes.append(scopesStarted)
    return .scope(scopesStarted)
  }

  func endScope(_ use: Use) {
    guard case .scope(let number) = use else { return }
    scopes.removeAll { $0 == number }
    if cancelledScope == number { cancelledScope = nil }
  }

  /// Runs `operation`, and cancels the channel's waits if the task is cancelled before it returns.
  func cancelledWithTask<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
    let scope = startScope()
    defer { endScope(scope) }
    let canceller = canceller(of: scope)
    let result: Result<T, E> = await withTaskCancellationHandler {
      do throws(E) {
        return .success(try await operation())
      } catch {
        return .failure(error)
      }
    } onCancel: {
      canceller.cancel()
    }
    return try result.get()
  }

  /// Whether the channel may receive once more in this tick.
  var mayReceive: Bool { isReadable && !hasSpentTick }

  private var hasSpentTick: Bool { receivingTick == loop.tickNumber && receivedInTick >= Self.tickBytesMax }

  /// Sets the time at which waits fail with `timedOut`.
  ///
  /// Performance: moving the deadline to a later time inserts nothing into the loop's heap.
  func setDeadline(_ deadline: Deadline) {
    self.deadline = deadline
    enter(deadline)
  }

  /// Sets the time at which the subscriber is woken regardless of readiness, and without an error.
  func setWakeUpTime(_ wakeUpTime: Deadline) {
    self.wakeUpTime = wakeUpTime
    enter(wakeUpTime)
  }

  private func enter(_ deadline: Deadline) {
    guard deadline < deadlineEntry else { return }
    if deadline <= loop.now { mayBeInterrupted = true }
    deadlineEntry = deadline
    loop.insert(DeadlineHeap.Entry(deadline: deadline, slot: slot, registration: registration))
  }

  /// Returns a handle that cancels a use of the channel, from any thread.
  func canceller(of use: Use) -> Canceller {
    Canceller(loop: loop, cancellation: ClientLoop.Cancellation(slot: slot, registration: registration, use: use))
  }

  // MARK: - From the loop

  func became(readable: Bool, writable: Bool, hungUp: Bool) {
    if readable { isReadable = true }
    if writable { isWritable = true }
    if hungUp { isHungUp = true }
    if let connectAnswered, writable {
      self.connectAnswered = nil
      connectAnswered()
    }
    if case .none = subscriber {
      if isReadable { watcher?.becameReadable() }
    } else if readInterest && isReadable || writeInterest && isWritable {
      wakeSubscriber()
    }
  }

  /// Makes the current wait end when the socket becomes writable, too.
  func addWriteInterest() { writeInterest = true }

  /// Changes the events that the current subscriber waits for.
  func setInterest(reading: Bool, writing: Bool) {
    readInterest = reading
    writeInterest = writing
    if reading && isReadable || writing && isWritable { loop.yield(self) }
  }

  /// Removes the subscriber without waking it.
  func unsubscribe() { subscriber = .none }

  /// Wakes the subscriber, because the channel has a new share of the tick or was ready already.
  func becameReady() { wakeSubscriber() }

  /// Ends the current wait with `cancelled`, or the next wait of this use if there is none.
  func cancelled(_ use: Use) {
    switch use {
    case .exchange(let exchange):
      guard exchange == self.exchange else { return }
      cancelledExchange = exchange
    case .scope(let scope):
      guard scopes.contains(scope) else { return }
      // The outermost scope ends last, so its cancellation covers the inner scopes.
      cancelledScope = min(scope, cancelledScope ?? scope)
    }
    mayBeInterrupted = true
    wakeSubscriber()
  }

  func deadlineEntryExpired(_ entry: Deadline) {
    // A sooner entry has replaced this one.
    guard entry == deadlineEntry else { return }
    deadlineEntry = .never
    if wakeUpTime <= loop.now {
      wakeUpTime = .never
      wakeSubscriber()
    }
    guard deadline > loop.now else {
      mayBeInterrupted = true
      return wakeSubscriber()
    }
    enter(min(deadline, wakeUpTime))
  }

  private func wakeSubscriber() {
    var woken = Subscriber.none
    swap(&woken, &subscriber)
    switch woken {
    case .none: break
    case .task(let continuation): continuation.resume()
    // The caller may be inside an operation, so the callback runs later in the tick.
    case .callback(let callback): loop.submit(callback, inline: false)
    }
  }
}
