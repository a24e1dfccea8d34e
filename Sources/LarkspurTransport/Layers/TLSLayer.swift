import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import Synchronization

/// TLS between a connection and its channel: ciphertext on one side, plaintext on the other.
///
/// Theory of operation. The engine decides everything; here is only where its bytes come from and go to. Ciphertext
/// is received into one chunk and encrypted into another, both of the loop's pool and held only while there is something
/// in them: an idle connection holds none.
///
/// A record of data is encrypted only where all of it fits, so that the engine never holds half of one. A part of the
/// room is kept for what TLS has to say of its own accord (alerts, answers to key updates): data cannot use it up. A
/// peer that demands answers without end and takes none is refused when that part is full.
///
/// Behind an `https` proxy the ciphertext goes through another layer, the one with the proxy. It is asked for where the
/// channel would be; without one that is a comparison with nil per call, and for requests without TLS nothing.
struct TLSLayer: ~Copyable {
  enum Failure: Error {
    case kernel(Errno)
    indirect case tls(TLSError)
  }

  enum HandshakeStep {
    case done(Handshake)
    case wait(reading: Bool, writing: Bool)
    case wantsTrust(Trust)
    case wantsIdentity(issuers: [DistinguishedName])
  }

  private let loop: ClientLoop
  private let outer: OuterTLS?
  private var engine: TLSEngine
  private let keeping: BufferKeeping?
  private var incoming = Chunk()
  private var outgoing = Chunk()
  /// How much to receive at once. It doubles while receives fill it.
  private var receiveBytes = ChunkPool.smallest
  private static let receiveBytesMax = 128 * 1024
  /// RFC 8446 5.1.
  private static let recordBytesMax = 16 * 1024
  /// What encryption adds to a record, and more.
  private static let recordOverhead = 256
  /// The room that data leaves free.
  private static let reservedBytes = 1024

  /// Whether reading may come to something without another receive.
  private(set) var hasInput = false
  private var inputEnded = false
  private var hasFailed = false
  /// How often ciphertext has been taken.
  private(set) var sends = 0
  /// The peer takes no more, or is to get no more.
  private var hasStoppedSending = false
  /// A message of TLS's own has come in part: until the rest is there, nothing can be encrypted.
  private var writingWaitsForInput = false

  /// - Parameter received: Ciphertext that has come already.
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

  /// Whether ciphertext waits to be sent, and could be.
  private var hasOutput: Bool {
    guard let outer else { return outgoing.count > 0 }
    return outer.hasOutput || outgoing.count > 0 && !outer.waitsForInput
  }

  /// What there is to send, and whether plaintext could be added to it. (Mutating: of what cannot be changed the compiler makes
  /// a copy first.)
  var sendingState: (hasOutput: Bool, waitsForInput: Bool) {
    mutating get { (hasOutput, writingWaitsForInput || outer?.waitsForInput == true) }
  }

  private var hasOuterInput: Bool { outer?.hasInput == true }

  // MARK: - Handshake

  /// Goes on with the handshake as far as it leads without waiting.
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
        // The last flight leaves together with the first request, if there is one in this turn.
        releaseIdleChunks()
        return .done(handshake)
      case .wantsTrust(let trust):
        _ = try sendOutgoing(to: channel)
        return .wantsTrust(trust)
      case .wantsIdentity(let issuers):
        _ = try sendOutgoing(to: channel)
        return .wantsIdentity(issuers: issuers)
      case .wantsOutput:
        // Nothing is read before there is room for the answer.
        guard try !sendOutgoing(to: channel) else { continue }
        // The two layers would wait for each other: the outer one for the rest of a message, the inner one for room.
        guard hasOutput else { throw .tls(TLSError(.protocolViolation, reason: "the proxy sends half a message")) }
        return .wait(reading: false, writing: true)
      case .wantsInput:
        _ = try sendOutgoing(to: channel)
        // One more step with the end of the stream tells what it means.
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

  /// Appends plaintext to `plain`: what is there already, or else of one receive (more of them while the channel's share
  /// of the turn lasts, if they bring nothing for us).
  mutating func receive(from channel: Channel, into plain: inout Chunk) throws(Failure) -> ClientSocket.Received {
    var (hasReceived, hasLookedAgain) = (false, false)
    while true {
      if hasInput {
        // Without room OpenSSL forgets the alert that says what is wrong with what has come.
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
        case .wantsInput: hasInput = false
        case .wantsOutput:
          makeRoom()
          guard outgoing.spareCapacity >= Self.recordOverhead else {
            hasFailed = true
            throw .tls(TLSError(.protocolViolation, reason: "the server demands answers and takes none"))
          }
          continue
        }
      }
      // What came was TLS's own, such as the tickets that servers send in front of their first response. Reading those takes
      // as long as a response takes to follow: to look for it once more is cheaper than to wait.
      let mayFollow = hasReceived && !hasLookedAgain && outer == nil && channel.isOpen
      guard channel.isReadable && (!hasReceived || channel.mayReceive) || hasOuterInput || mayFollow,
        try receiveCiphertext(from: channel)
      else { return .wouldBlock }
      hasLookedAgain = hasReceived
      hasReceived = true
    }
  }

  /// Encrypts the queue and sends it, as far as the kernel takes it, and not much more than `limit` bytes. True: all of
  /// it has left.
  mutating func send(
    _ queue: inout ByteQueue, to channel: Channel, atMost limit: Int = .max
  ) throws(Failure) -> Bool {
    var left = limit
    while !hasStoppedSending {
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
        case .wantsOutput:
          // There was room for it.
          if outgoing.count == 0 {
            throw .tls(TLSError(.protocolViolation, reason: "a record is larger than it may be"))
          }
          isFull = true
        case .wantsInput: writingWaitsForInput = true
        }
      }
      guard try sendOutgoing(to: channel), !writingWaitsForInput else { break }
      if queue.isEmpty { return true }
      if left <= 0 { return false }
    }
    return queue.isEmpty && outgoing.count == 0 && outer?.isSending != true
  }

  /// Sends what TLS has to say of its own accord. A peer that takes no more may have sent its response already: that is
  /// no failure of a receive.
  private mutating func answer(_ channel: Channel) {
    if hasStoppedSending { outgoing.drop(outgoing.count) }
    if hasOutput { _ = try? sendOutgoing(to: channel) }
  }

  /// What has not left yet does not leave any more.
  mutating func stopSending() {
    hasStoppedSending = true
    outgoing.drop(outgoing.count)
    outer?.stopSending()
    releaseIdleChunks()
  }

  /// Says farewell, if the kernel takes it at once: nobody waits for it. `inOrder`: what is encrypted already may leave
  /// before.
  mutating func close(over channel: Channel, inOrder: Bool) {
    // What OpenSSL has to say of its own failure leaves in any case.
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

  /// False: the kernel has nothing.
  private mutating func receiveCiphertext(from channel: Channel) throws(Failure) -> Bool {
    if incoming.capacity < receiveBytes {
      var larger = loop.takeChunk(atLeast: receiveBytes)
      _ = larger.append(incoming.bytes)
      swap(&incoming, &larger)
      loop.recycle(larger)
    }
    // A receive without room would look like the end of the stream.
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

  /// True: nothing is left.
  private mutating func sendOutgoing(to channel: Channel) throws(Failure) -> Bool {
    if let outer { return try sendOutgoing(to: channel, through: outer) }
    let count = outgoing.count
    guard count > 0 else { return true }
    do throws(Errno) {
      let isAll = try channel.send(&outgoing)
      sends += 1
      guard isAll else { return false }
    } catch {
      // A part of it may have been taken before the rest failed.
      if outgoing.count < count { sends += 1 }
      stopSending()
      throw .kernel(error)
    }
    releaseIdleChunks()
    return true
  }

  private mutating func sendOutgoing(to channel: Channel, through outer: OuterTLS) throws(Failure) -> Bool {
    do throws(Failure) {
      // A part of it may be taken before the rest fails.
      sends += 1
      guard try outer.send(&outgoing, to: channel) else { return false }
    } catch {
      stopSending()
      throw error
    }
    releaseIdleChunks()
    return true
  }

  /// Room for a flight of the handshake, an answer, an alert.
  private mutating func makeRoom() { _ = makeRoom(Self.reservedBytes, of: 0) }

  /// Room for so many bytes, of so much that is to be sent. False: what is in the way has to leave first.
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

/// The right to keep OpenSSL's record buffers, 32 KiB, for as long as this is kept. Few have it: who serves one request after the
/// other most often is among them, and a thousand idle connections hold next to nothing.
struct BufferKeeping: ~Copyable {
  private static let onOneLoopMax = 8
  private let loop: ClientLoop

  /// Nil: there are so many on the loop already.
  init?(on loop: ClientLoop) {
    guard loop.bufferKeepers.load(ordering: .relaxed) < Self.onOneLoopMax else { return nil }
    loop.bufferKeepers.wrappingAdd(1, ordering: .relaxed)
    self.loop = loop
  }

  // On any thread: a connection ends where it is let go of.
  deinit { loop.bufferKeepers.wrappingSubtract(1, ordering: .relaxed) }
}
