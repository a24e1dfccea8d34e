import LarkspurBytes
import LarkspurIO

/// Looks at what happens to a channel between its uses.
protocol ChannelWatcher: AnyObject {
  func becameReadable()
}

/// A socket on a loop: its readiness, the task or callback that waits for it, and the deadline of that wait.
///
/// The kernel reports each change once (edge-triggered), so readiness is remembered here until a call shows that it is used up. A
/// channel belongs to the thread that ticks its loop.
public final class Channel {
  /// Why a wait ended before the socket was ready.
  enum Interruption: Error {
    case timedOut
    case cancelled
    /// Another task waits already: only one can be woken. Nothing has changed for that one.
    case busy
  }

  /// What a channel is used for, and what a cancellation is meant for. Either may come too late: then the channel
  /// is used for something else, which must not suffer.
  enum Use: Hashable {
    /// The exchange of that number.
    case exchange(UInt64)
    /// Everything between `beginScope` and `endScope`.
    case scope(UInt64)
  }

  public let loop: ClientLoop
  public let address: SocketAddress
  private let socket: ClientSocket
  private var slot: UInt32 = 0
  private var registration: UInt32 = 0

  private(set) var isReadable = false
  private(set) var isWritable = false
  /// The peer has closed its side or the connection broke: a short read does not mean that all has been read.
  private var isHungUp = false

  /// Called when the kernel knows how the connect has ended.
  var connectAnswered: (() -> Void)?

  /// The subscriber to readiness.
  private enum Subscriber {
    case none
    case task(Waiter)
    case callback(any LoopCallback)
  }

  private var subscriber = Subscriber.none
  /// Called when there is something to read and no subscriber waits for it.
  var watcher: (any ChannelWatcher)?
  private var wantsReading = true
  private var wantsWriting = false
  /// The latest exchange.
  private var exchange: UInt64 = 0
  /// The scopes that have begun and not ended, and how many there have been.
  private var scopes: [UInt64] = []
  private var scopesBegun: UInt64 = 0
  private var cancelledExchange: UInt64?
  /// The outermost scope that has been cancelled and has not ended.
  private var cancelledScope: UInt64?

  /// A cancellation or a deadline has come. It may have been for what is over: `interruption` tells.
  private var mayBeInterrupted = false
  private var isUnsentLimited = false

  private var deadline = Deadline.never
  /// The entry that the loop holds for this channel. The deadline may be later: then the entry is renewed.
  private(set) var deadlineEntry = Deadline.never
  /// When a wait is to end without an error.
  private var alarm = Deadline.never

  private var receivingTick: UInt64 = 0
  private var receivedInTick = 0
  private var sendingTick: UInt64 = 0
  private var sentInTick = 0
  /// A channel's share of a tick, in bytes each way. At least one call is made.
  static let tickBytesMax = 256 * 1024

  init(to address: SocketAddress, on loop: ClientLoop) throws(Errno) {
    self.loop = loop
    self.address = address
    let socket = try ClientSocket(for: address, kernel: loop.kernel)
    self.socket = consume socket
    (slot, registration) = loop.register(self)
  }

  private(set) var isOpen = true

  var localAddress: SocketAddress? { socket.localAddress }

  /// Takes the channel off the loop. The subscriber is woken, and finds the channel closed. The descriptor itself is
  /// closed when the last owner lets go of the channel, which the loop does here.
  public func close() {
    guard isOpen else { return }
    isOpen = false
    loop.deregister(slot: slot)
    wakeSubscriber()
  }

  /// Closes the channel from whatever thread its last owner was on.
  func abandon() {
    if loop.isCurrent { close() } else { loop.post(abandoned: self) }
  }

  // MARK: - Calls

  /// Chooses this end, before `connect`. Nil: that is done.
  func bind(to local: LocalEndpoint) -> Errno? {
    do throws(Errno) {
      try socket.bind(to: local)
      return nil
    } catch {
      return error
    }
  }

  /// Begins to connect.
  ///
  /// - Returns: `true` if the channel is connected; `false` if the caller has to wait for `isWritable`, then `finishConnecting`.
  func connect() throws(Errno) -> Bool {
    let isConnected = try socket.connect(to: address)
    try loop.watch(socket.descriptor, (slot, registration))
    return isConnected
  }

  /// After the wait: throws what the connect has failed with. A socket that has failed is ready for everything
  /// (EPOLLERR): one that can be written to and not read has not, and the kernel need not be asked.
  func finishConnecting() throws(Errno) {
    if isReadable || !isWritable { try socket.finishConnecting() }
  }

  /// The next receive asks the kernel, although no event has told of anything to receive.
  func expectInput() { isReadable = true }

  /// One receive. It keeps the books on readiness.
  func receive(into chunk: inout Chunk) throws(Errno) -> ClientSocket.Received {
    let received = try socket.receive(into: &chunk)
    switch received {
    case .bytes(let count, let drained):
      // What arrives from now on raises a new event. An end that has been reported already will not.
      if drained, !isHungUp { isReadable = false }
      countReceived(count)
    case .wouldBlock: isReadable = false
    case .endOfStream: break
    }
    return received
  }

  /// From now on the kernel takes of a body no more than may soon leave.
  func limitUnsent() {
    guard !isUnsentLimited else { return }
    isUnsentLimited = true
    socket.limitUnsent()
  }

  /// Sends what the kernel takes. True: all of it.
  func send(_ queue: inout ByteQueue) throws(Errno) -> Bool {
    let sentAll = try socket.send(&queue)
    isWritable = sentAll
    return sentAll
  }

  /// Sends what the kernel takes. True: all of it.
  func send(_ chunk: inout Chunk) throws(Errno) -> Bool {
    let count = chunk.count
    isWritable = try socket.send(&chunk)
    countSent(count - chunk.count)
    return isWritable
  }

  /// Sends what the kernel takes, and at most `limit` bytes. True: all of it.
  func send(_ queue: inout ByteQueue, atMost limit: Int) throws(Errno) -> Bool {
    guard limit > 0 else { return queue.isEmpty }
    let count = queue.byteCount
    isWritable = try socket.send(&queue, atMost: limit)
    countSent(count - queue.byteCount)
    return queue.isEmpty
  }

  /// Sends once from a file. Nil: the kernel takes no more for now. 0: the file ends there.
  func sendFile(_ file: OpenFile, at offset: Int, count: Int) throws(Errno) -> Int? {
    let sent = try socket.sendFile(file, at: offset, count: count)
    if let sent { countSent(sent) } else { isWritable = false }
    return sent
  }

  /// One move into the pipe, which is empty. It keeps the books on readiness.
  func fill(_ pipe: Pipe, atMost limit: Int) throws(Errno) -> ClientSocket.Received {
    let received = try pipe.fill(from: socket, atMost: limit)
    switch received {
    case .bytes(let count, _): countReceived(count)
    case .wouldBlock: isReadable = false
    case .endOfStream: break
    }
    return received
  }

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

  /// Waits until the socket may be readable, if that is wanted, or writable, if that is, or until the tick's share is
  /// renewed.
  func wait(reading: Bool = true, writing: Bool) async throws(Interruption) {
    guard try mustWait(reading: reading, writing: writing) else { return }
    await Waiter.suspend { subscriber = .task($0) }
    if mayBeInterrupted, let interruption { throw interruption }
  }

  /// Subscribes a callback to what `wait(reading:writing:)` waits for.
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
    wantsReading = reading
    wantsWriting = writing
    return true
  }

  /// Why a wait is to end early at present.
  private var interruption: Interruption? {
    if cancelledScope != nil || cancelledExchange == exchange { return .cancelled }
    return deadline <= loop.now ? .timedOut : nil
  }

  /// Begins an exchange. A cancellation of the one before may have come when it was over.
  func begin(exchange: UInt64, deadline: Deadline) {
    cancelledExchange = nil
    mayBeInterrupted = cancelledScope != nil
    self.exchange = exchange
    setDeadline(deadline)
  }

  /// Begins a scope: all waits up to its end can be cancelled together.
  func beginScope() -> Use {
    scopesBegun += 1
    scopes.append(scopesBegun)
    return .scope(scopesBegun)
  }

  func endScope(_ use: Use) {
    guard case .scope(let number) = use else { return }
    scopes.removeAll { $0 == number }
    if cancelledScope == number { cancelledScope = nil }
  }

  /// Runs `operation`, and cancels the channel's waits if the task is cancelled meanwhile.
  func cancelledWithTask<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
    let scope = beginScope()
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

  /// When waits are to end. A later deadline costs nothing.
  func setDeadline(_ deadline: Deadline) {
    self.deadline = deadline
    enter(deadline)
  }

  /// Sets the time at which the subscriber is woken whatever the socket is ready for.
  func setAlarm(_ alarm: Deadline) {
    self.alarm = alarm
    enter(alarm)
  }

  private func enter(_ deadline: Deadline) {
    guard deadline < deadlineEntry else { return }
    if deadline <= loop.now { mayBeInterrupted = true }
    deadlineEntry = deadline
    loop.insert(DeadlineHeap.Entry(deadline: deadline, slot: slot, registration: registration))
  }

  /// Returns what cancels a use of the channel, from any thread.
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
    } else if wantsReading && isReadable || wantsWriting && isWritable {
      wakeSubscriber()
    }
  }

  /// Has the subscriber woken for writing, too.
  func wantWriting() { wantsWriting = true }

  /// Wakes the subscriber, because the tick's share is renewed.
  func becameReady() { wakeSubscriber() }

  /// Ends the present wait, or the next one if there is none.
  func cancelled(_ use: Use) {
    switch use {
    case .exchange(let exchange):
      guard exchange == self.exchange else { return }
      cancelledExchange = exchange
    case .scope(let scope):
      guard scopes.contains(scope) else { return }
      // The outermost one lasts longest.
      cancelledScope = min(scope, cancelledScope ?? scope)
    }
    mayBeInterrupted = true
    wakeSubscriber()
  }

  func deadlineEntryExpired(_ entry: Deadline) {
    // A sooner entry has replaced this one.
    guard entry == deadlineEntry else { return }
    deadlineEntry = .never
    if alarm <= loop.now {
      alarm = .never
      wakeSubscriber()
    }
    guard deadline > loop.now else {
      mayBeInterrupted = true
      return wakeSubscriber()
    }
    enter(min(deadline, alarm))
  }

  private func wakeSubscriber() {
    var woken = Subscriber.none
    swap(&woken, &subscriber)
    switch woken {
    case .none: break
    case .task(let waiter): waiter.wake()
    // Not at once: the caller is inside an operation of its own.
    case .callback(let callback): loop.submit(callback, inline: false)
    }
  }
}
