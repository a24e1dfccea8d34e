import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import Synchronization

/// TLS between a connection and its channel: ciphertext on one side, plaintext on the other.
///
/// Theory of operation. The engine makes all TLS decisions; the layer moves its bytes. Ciphertext is received into one
/// chunk and encrypted into another. Both come from the loop's pool and are held only while they have content: an idle
/// connection holds no chunk.
///
/// A record of data is encrypted only if all of it fits, so that the engine never holds half a record. Part of the room
/// is reserved for TLS's own messages (alerts, answers to key updates), so that data cannot use it up. A peer that
/// demands answers without end and reads no answer is refused when that part is full.
///
/// Behind an `https` proxy the ciphertext goes through another layer, the one with the proxy, in place of the channel.
/// Performance: without such a proxy that costs a comparison with `nil` for each call.
struct TLSLayer: ~Copyable {
  enum Failure: Error {
    case kernel(Errno)
    indirect case tls(TLSError)
  }

  enum HandshakeStep {
    case done(Handshake)
    case wait(reading: Bool, writing: Bool)
    case needsTrust(Trust)
    case needsIdentity(issuers: [DistinguishedName])
  }

  private let loop: ClientLoop
  private let outer: OuterTLS?
  private var engine: TLSEngine
  private let keeping: BufferKeeping?
  private var incoming = Chunk()
  private var outgoing = Chunk()
  /// The number of bytes to receive at once. Doubled each time a receive fills the buffer.
  private var receiveBytes = ChunkPool.smallest
  private static let receiveBytesMax = 128 * 1024
  /// The maximum plaintext of a record (RFC 8446 5.1).
  private static let recordBytesMax = 16 * 1024
  /// An upper bound of the bytes that encryption adds to a record.
  private static let recordOverhead = 256
  /// The room that data leaves free for TLS's own messages.
  private static let reservedBytes = 1024

  /// Whether reading may make progress without another receive.
  private(set) var hasInput = false
  private var inputEnded = false
  private var hasFailed = false
  /// A counter that changes whenever ciphertext may have been handed down, to the channel or to the outer layer.
  private(set) var sends = 0
  /// The reason why the peer takes no more bytes, or must not get more. The error may come from an answer that TLS
  /// itself sends, which no caller waited for: `send` reports it.
  private var sendingFailure: Failure?
  private var hasStoppedSending: Bool { sendingFailure != nil }
  /// Whether an incomplete message that TLS itself sends blocks encryption until the rest of the message arrives.
  private var writingWaitsForInput = false

  /// - Parameter received: Ciphertext that has been received already.
  init(
    _ engine: consuming TLSEngine, on loop: ClientLoop, through outer: OuterTLS? = nil,
    received: consuming Chunk = Chunk()
  ) {
    self.engine = engine
    self.loop = loop
    keeping = BufferKeeping(on: loop)
    if keeping != nil { self.engine.keepBuffers() }
    self.outer = outer
    hasInput = received.count > 0
    incoming = received
  }

  /// Whether there is ciphertext to send, and a send could make progress.
  private var hasOutput: Bool {
    guard !hasStoppedSending else { return false }
    guard let outer else { return outgoing.count > 0 }
    return outer.hasOutput || outgoing.count > 0 && !outer.waitsForInput
  }

  /// Whether there is something to send, and whether TLS accepts no plaintext before it has received something.
  ///
  /// Performance: `mutating`, because the compiler would first copy a value that cannot be changed.
  var sendingState: (hasOutput: Bool, waitsForInput: Bool) {
    mutating get { (hasOutput, writingWaitsForInput || outer?.waitsForInput == true) }
  }

  private var hasOuterInput: Bool { outer?.hasInput == true }

  // MARK: - Handshake

  /// Advances the handshake as far as possible without waiting.
  mutating func handshake(over channel: Channel) throws(Failure) -> HandshakeStep {
    while true {
      makeRoom()
      let step: TLSEngine.Step
      do throws(TLSError) {
        step = try engine.handshake(&incoming, &outgoing, inputEnded: inputEnded)
      } catch {
        hasFailed = true
        throw .tls(error)
      }
      hasInput = incoming.count > 0 || hasOuterInput
      switch step {
      case .done(let handshake):
        // The last flight leaves together with the first request, if there is one in this tick.
        releaseIdleChunks()
        return .done(handshake)
      case .needsTrust(let trust):
        _ = try sendOutgoing(to: channel)
        return .needsTrust(trust)
      case .needsIdentity(let issuers):
        _ = try sendOutgoing(to: channel)
        return .needsIdentity(issuers: issuers)
      case .needsOutput:
        // Nothing is read before there is room for the answer.
        guard try !sendOutgoing(to: channel) else { continue }
        // The two layers would wait for each other: the outer layer for the rest of a message, the inner layer for
        // room.
        guard hasOutput else { throw .tls(TLSError(.protocolViolation, reason: "the proxy sends half a message")) }
        return .wait(reading: false, writing: true)
      case .needsInput:
        _ = try sendOutgoing(to: channel)
        // At the end of the stream, one more step of the engine returns the right error.
        guard channel.mayReceive || hasOuterInput, try receiveCiphertext(from: channel) else {
          return .wait(reading: true, writing: hasOutput)
        }
      }
    }
  }

  mutating func decide(_ decision: TrustDecision) { engine.decide(decision) }

  mutating func identify(_ identity: ClientIdentity?) throws(TLSError) { try engine.identify(identity) }

  mutating func takePinMismatches() -> [PinMismatch] { engine.takePinMismatches() }

  // MARK: - Data

  /// Appends plaintext to `plain`: plaintext that is available already, or else from one receive. If a receive brings
  /// only TLS's own messages, receives again within the channel's share of the tick.
  mutating func receive(from channel: Channel, into plain: inout Chunk) throws(Failure) -> ClientSocket.Received {
    var (hasReceived, hasLookedAgain) = (false, false)
    while true {
      if hasInput {
        // OpenSSL needs room for the alert that describes an error in the received bytes; otherwise it drops the alert.
        makeRoom()
        let before = incoming.count
        let reading = try read(into: &plain)
        if incoming.count < before { writingWaitsForInput = false }
        answer(channel)
        switch reading {
        case .bytes(let count, let drained):
          hasInput = !drained || hasOuterInput
          if drained { releaseIdleChunks() }
          return .bytes(count, drained: plain.spareCapacity > 0)
        case .closed: return .endOfStream
        case .needsInput: hasInput = false
        case .needsOutput:
          makeRoom()
          guard outgoing.spareCapacity >= Self.recordOverhead else {
            hasFailed = true
            throw .tls(TLSError(.protocolViolation, reason: "the server demands answers and takes none"))
          }
          continue
        }
      }
      // The received bytes were TLS's own, such as the tickets that servers send before their first response.
      // Performance: a response follows about as soon as these have been read, so one more receive is cheaper than a
      // wait.
      let mayFollow = hasReceived && !hasLookedAgain && outer == nil && channel.isOpen
      guard channel.isReadable && (!hasReceived || channel.mayReceive) || hasOuterInput || mayFollow,
        try receiveCiphertext(from: channel)
      else { return .wouldBlock }
      hasLookedAgain = hasReceived
      hasReceived = true
    }
  }

  /// Encrypts the queue and sends it, as far as the kernel takes it, and not much more than `limit` bytes.
  ///
  /// - Returns: `true` if all of it has been sent.
  mutating func send(
    _ queue: inout ByteQueue, to channel: Channel, atMost limit: Int = .max
  ) throws(Failure) -> Bool {
    if let sendingFailure { throw sendingFailure }
    var left = limit
    while true {
      var isFull = false
      while !queue.isEmpty, left > 0, !isFull, !writingWaitsForInput {
        let count = min(queue.lendFirst { $0.count }, Self.recordBytesMax)
        guard makeRoom(count + Self.recordOverhead + Self.reservedBytes, of: queue.byteCount) else {
          isFull = true
          continue
        }
        switch try write(queue, count) {
        case .bytes(let count):
          queue.drop(count)
          left -= count
        case .needsOutput:
          // There was room for the record.
          if outgoing.count == 0 {
            throw .tls(TLSError(.protocolViolation, reason: "a record is larger than it may be"))
          }
          isFull = true
        case .needsInput: writingWaitsForInput = true
        }
      }
      guard try sendOutgoing(to: channel), !writingWaitsForInput else { break }
      if queue.isEmpty { return true }
      if left <= 0 { return false }
    }
    return queue.isEmpty && outgoing.count == 0 && outer?.isSending != true
  }

  /// Sends TLS's own messages. An error does not end the reading, because a peer that takes no more may have sent its
  /// response already.
  private mutating func answer(_ channel: Channel) {
    if hasStoppedSending { outgoing.drop(outgoing.count) }
    if hasOutput { _ = try? sendOutgoing(to: channel) }
  }

  /// Drops what has not been sent, and sends nothing more.
  mutating func stopSending() { stopSending(because: .kernel(.brokenPipe)) }

  private mutating func stopSending(because failure: Failure) {
    sendingFailure = sendingFailure ?? failure
    outgoing.drop(outgoing.count)
    outer?.stopSending()
    releaseIdleChunks()
  }

  /// Queues `close_notify`, and sends as much of it as the kernel takes. The owner sends no data after it.
  mutating func endSending(to channel: Channel) {
    guard !hasStoppedSending, !hasFailed else { return }
    makeRoom()
    engine.shutDown(&outgoing)
    _ = try? sendOutgoing(to: channel)
  }

  /// Sends `close_notify` if the kernel takes it at once; there is no wait for it.
  ///
  /// - Parameter inOrder: Whether bytes that are encrypted already may be sent before it.
  mutating func close(over channel: Channel, inOrder: Bool) {
    // An alert in which OpenSSL reports its own failure is sent in any case.
    if !inOrder, !hasFailed, outgoing.count > 0 || outer?.isSending == true { stopSending() }
    if !hasStoppedSending {
      if !hasFailed {
        makeRoom()
        engine.shutDown(&outgoing)
      }
      _ = try? sendOutgoing(to: channel)
    }
    outgoing.drop(outgoing.count)
    incoming.drop(incoming.count)
    hasInput = false
    releaseIdleChunks()
    outer?.close(over: channel, inOrder: inOrder)
  }

  // MARK: - Engine

  private mutating func read(into plain: inout Chunk) throws(Failure) -> TLSEngine.Reading {
    do throws(TLSError) {
      return try engine.read(&incoming, into: &plain, &outgoing, inputEnded: inputEnded)
    } catch {
      hasFailed = true
      throw .tls(error)
    }
  }

  private mutating func write(_ queue: borrowing ByteQueue, _ count: Int) throws(Failure) -> TLSEngine.Writing {
    do throws(TLSError) {
      return try queue.lendFirst { bytes throws(TLSError) in
        try engine.write(bytes.extracting(first: count), &incoming, &outgoing)
      }
    } catch {
      hasFailed = true
      throw .tls(error)
    }
  }

  // MARK: - Ciphertext

  /// Receives ciphertext once.
  ///
  /// - Returns: `false` if the kernel has nothing.
  private mutating func receiveCiphertext(from channel: Channel) throws(Failure) -> Bool {
    if incoming.capacity < receiveBytes {
      var larger = loop.takeChunk(atLeast: receiveBytes)
      _ = larger.append(incoming.bytes)
      swap(&incoming, &larger)
      loop.recycle(larger)
    }
    // Without room, a receive would return 0 bytes, like the end of the stream.
    if incoming.spareCapacity > 0 {
      switch try receiveOnce(from: channel) {
      case .bytes(_, let drained):
        if !drained { receiveBytes = min(receiveBytes * 2, Self.receiveBytesMax) }
      case .wouldBlock:
        releaseIdleChunks()
        return false
      case .endOfStream: inputEnded = true
      }
    }
    hasInput = true
    return true
  }

  private mutating func receiveOnce(from channel: Channel) throws(Failure) -> ClientSocket.Received {
    if let outer { return try outer.receive(from: channel, into: &incoming) }
    do throws(Errno) {
      return try channel.receive(into: &incoming)
    } catch {
      throw .kernel(error)
    }
  }

  /// Sends as much of the ciphertext as the kernel takes.
  ///
  /// - Returns: `true` if nothing is left.
  private mutating func sendOutgoing(to channel: Channel) throws(Failure) -> Bool {
    if let outer { return try sendOutgoing(to: channel, through: outer) }
    let count = outgoing.count
    guard count > 0 else { return true }
    do throws(Errno) {
      let isAll = try channel.send(&outgoing)
      sends += 1
      guard isAll else { return false }
    } catch {
      // Some bytes may have been taken before the error.
      if outgoing.count < count { sends += 1 }
      stopSending(because: .kernel(error))
      throw .kernel(error)
    }
    releaseIdleChunks()
    return true
  }

  private mutating func sendOutgoing(to channel: Channel, through outer: OuterTLS) throws(Failure) -> Bool {
    do throws(Failure) {
      // Some bytes may be taken before an error.
      sends += 1
      guard try outer.send(&outgoing, to: channel) else { return false }
    } catch {
      stopSending(because: error)
      throw error
    }
    releaseIdleChunks()
    return true
  }

  /// Makes room for a flight of the handshake, an answer or an alert.
  private mutating func makeRoom() { _ = makeRoom(Self.reservedBytes, of: 0) }

  /// Makes room for `count` bytes, of a `total` to send.
  ///
  /// - Returns: `false` if the current content has to be sent first.
  private mutating func makeRoom(_ count: Int, of total: Int) -> Bool {
    if outgoing.spareCapacity >= count { return true }
    guard outgoing.count == 0 else { return false }
    var larger = loop.takeChunk(atLeast: min(max(count, total + total / 8), 4 * ChunkPool.smallest))
    swap(&outgoing, &larger)
    loop.recycle(larger)
    return true
  }

  private mutating func releaseIdleChunks() {
    if outgoing.capacity > 0, outgoing.count == 0 {
      var empty = Chunk()
      swap(&outgoing, &empty)
      loop.recycle(empty)
    }
    if incoming.capacity > 0, incoming.count == 0, !hasInput {
      var empty = Chunk()
      swap(&incoming, &empty)
      loop.recycle(empty)
    }
  }
}

/// The right to keep OpenSSL's record buffers, 32 KiB, for the lifetime of this value. At most eight TLS layers of a
/// loop have it, so that a thousand idle connections hold next to no memory.
struct BufferKeeping: ~Copyable {
  private static let onOneLoopMax = 8
  private let loop: ClientLoop

  /// Creates the right, or returns `nil` if the maximum for the loop is reached.
  init?(on loop: ClientLoop) {
    guard loop.bufferKeepers.load(ordering: .relaxed) < Self.onOneLoopMax else { return nil }
    loop.bufferKeepers.wrappingAdd(1, ordering: .relaxed)
    self.loop = loop
  }

  // Runs on any thread: a connection may be released anywhere.
  deinit { loop.bufferKeepers.wrappingSubtract(1, ordering: .relaxed) }
}
