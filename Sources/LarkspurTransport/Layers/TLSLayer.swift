import LarkspurBytes
import LarkspurIO
import LarkspurTLS

/// TLS between a connection and its channel: ciphertext on one side, plaintext on the other.
///
/// Theory of operation. The engine decides everything; here is only where its bytes come from and go to. Ciphertext
/// is received into one chunk and encrypted into another, both of the loop's pool and held only while there is something
/// in them: an idle connection holds none.
struct TLSLayer: ~Copyable {
  enum Failure: Error {
    case kernel(Errno)
    case tls(TLSError)
  }

  enum HandshakeStep {
    case done(Handshake)
    case wait(writing: Bool)
    case wantsTrust(Trust)
    case wantsIdentity(issuers: [String])
  }

  private let loop: ClientLoop
  private var engine: TLSEngine
  private var incoming = Chunk()
  private var outgoing = Chunk()
  /// How much to receive at once. It doubles while receives fill it.
  private var receiveBytes = ChunkPool.smallest
  private static let receiveBytesMax = 128 * 1024
  /// Whether reading may come to something without another receive.
  private(set) var hasInput = false
  private var inputEnded = false
  private var hasFailed = false
  /// The peer takes no more, or is to get no more.
  private var hasStoppedSending = false

  init(_ engine: consuming TLSEngine, on loop: ClientLoop) {
    self.engine = engine
    self.loop = loop
  }

  /// Whether ciphertext waits to be sent.
  var hasOutput: Bool { outgoing.count > 0 }

  // MARK: - Handshake

  /// Goes on with the handshake as far as it leads without waiting.
  mutating func handshake(over channel: Channel) throws(Failure) -> HandshakeStep {
    while true {
      makeRoomToSend()
      let step: TLSEngine.Step
      do throws(TLSError) {
        step = try engine.handshake(&incoming, &outgoing, inputEnded: inputEnded)
      } catch {
        hasFailed = true
        throw .tls(error)
      }
      hasInput = incoming.count > 0
      let sentAll = try sendOutgoing(to: channel)
      switch step {
      case .done(let handshake):
        releaseIdleChunks()
        return .done(handshake)
      case .wantsTrust(let trust): return .wantsTrust(trust)
      case .wantsIdentity(let issuers): return .wantsIdentity(issuers: issuers)
      case .wantsOutput: if !sentAll { return .wait(writing: true) }
      case .wantsInput:
        // One more step with the end of the stream tells what it means.
        if try receiveCiphertext(from: channel) == .wouldBlock { return .wait(writing: !sentAll) }
      }
    }
  }

  mutating func decide(_ decision: TrustDecision) { engine.decide(decision) }

  mutating func identify(_ identity: ClientIdentity?) throws(TLSError) { try engine.identify(identity) }

  // MARK: - Data

  /// Appends plaintext to `plain`: what is there already, or else of one receive.
  mutating func receive(from channel: Channel, into plain: inout Chunk) throws(Failure) -> ClientSocket.Received {
    while true {
      if hasInput {
        // Without room OpenSSL forgets the alert that says what is wrong with what has come.
        makeRoomToSend()
        switch try read(into: &plain) {
        case .bytes(let count, let drained):
          hasInput = !drained
          answer(channel)
          if drained { releaseIdleChunks() }
          return .bytes(count, drained: plain.spareCapacity > 0)
        case .closed: return .endOfStream
        case .wantsInput: hasInput = false
        case .wantsOutput:
          // An answer to a message of TLS's own: it has to leave before there is room for the next one.
          makeRoomToSend()
          guard answer(channel) else { return .wouldBlock }
          continue
        }
        answer(channel)
      }
      guard channel.mayReceive, try receiveCiphertext(from: channel) != .wouldBlock else { return .wouldBlock }
    }
  }

  /// Encrypts the queue and sends it, as far as the kernel takes it. True: all of it has left.
  mutating func send(_ queue: inout ByteQueue, to channel: Channel) throws(Failure) -> Bool {
    while !hasStoppedSending {
      var isFull = false
      while !queue.isEmpty, !isFull {
        makeRoomToSend(queue.byteCount)
        switch try write(queue) {
        case .bytes(let count): queue.drop(count)
        case .wantsOutput: isFull = true
        case .wantsInput: return false
        }
      }
      guard try sendOutgoing(to: channel) else { return false }
      if queue.isEmpty { return true }
    }
    return queue.isEmpty
  }

  /// Sends what TLS has to say of its own accord. True: all of it. A peer that takes no more may have sent its response
  /// already: that is no failure of a receive.
  @discardableResult
  private mutating func answer(_ channel: Channel) -> Bool {
    guard hasOutput, !hasStoppedSending else { return true }
    return (try? sendOutgoing(to: channel)) ?? true
  }

  /// What has not left yet does not leave any more.
  mutating func stopSending() {
    hasStoppedSending = true
    outgoing.drop(outgoing.count)
    releaseIdleChunks()
  }

  /// Says farewell, if the kernel takes it at once: nobody waits for it.
  mutating func close(over channel: Channel) {
    if !hasFailed, !hasStoppedSending {
      makeRoomToSend()
      engine.shutDown(&outgoing)
    }
    if !hasStoppedSending { _ = try? sendOutgoing(to: channel) }
    outgoing.drop(outgoing.count)
    incoming.drop(incoming.count)
    releaseIdleChunks()
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

  private mutating func write(_ queue: borrowing ByteQueue) throws(Failure) -> TLSEngine.Writing {
    let result: Result<TLSEngine.Writing, TLSError> = queue.lendFirst { bytes in
      do throws(TLSError) {
        return .success(try engine.write(bytes, &incoming, &outgoing))
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let writing): return writing
    case .failure(let error):
      hasFailed = true
      throw .tls(error)
    }
  }

  // MARK: - Ciphertext

  private enum Received {
    case something
    case wouldBlock
  }

  private mutating func receiveCiphertext(from channel: Channel) throws(Failure) -> Received {
    guard channel.isReadable else {
      releaseIdleChunks()
      return .wouldBlock
    }
    if incoming.capacity < receiveBytes {
      var larger = loop.takeChunk(atLeast: receiveBytes)
      _ = larger.append(incoming.bytes)
      swap(&incoming, &larger)
      loop.recycle(larger)
    }
    do throws(Errno) {
      switch try channel.receive(into: &incoming) {
      case .bytes(_, let drained):
        if !drained { receiveBytes = min(receiveBytes * 2, Self.receiveBytesMax) }
      case .wouldBlock:
        releaseIdleChunks()
        return .wouldBlock
      case .endOfStream: inputEnded = true
      }
    } catch {
      throw .kernel(error)
    }
    hasInput = true
    return .something
  }

  /// True: nothing is left.
  private mutating func sendOutgoing(to channel: Channel) throws(Failure) -> Bool {
    guard outgoing.count > 0 else { return true }
    do throws(Errno) {
      guard try channel.send(&outgoing) else { return false }
    } catch {
      stopSending()
      throw .kernel(error)
    }
    releaseIdleChunks()
    return true
  }

  /// Room for a small request or a flight of the handshake, or for some full records.
  private mutating func makeRoomToSend(_ plainCount: Int = 0) {
    guard outgoing.capacity == 0 else { return }
    outgoing = loop.takeChunk(
      atLeast: plainCount > ChunkPool.smallest / 2 ? 4 * ChunkPool.smallest : ChunkPool.smallest)
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
