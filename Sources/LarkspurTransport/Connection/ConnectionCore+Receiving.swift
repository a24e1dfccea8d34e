import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// From the channel to the parser.
extension ConnectionCore {
  @inline(__always)
  mutating func dropConsumed() {
    record.receivedBytes += consumed
    input.drop(consumed)
    consumed = 0
  }

  static func parse(
    _ input: borrowing Chunk, by parser: inout ResponseParser, consumed: inout Int
  ) throws(ResponseError) -> ResponseParser.Event {
    try parser.next(in: input.bytes, consumed: &consumed)
  }

  /// Receives once. True: the stream has ended, and the response with it.
  mutating func receive(from channel: Channel) throws(TransportError) -> Bool {
    makeRoom()
    let received: ClientSocket.Received
    do throws(TLSLayer.Failure) {
      received = try receiveOnce(from: channel)
    } catch {
      lastFailure = error
      throw fail { $0.connectionLost(into: &$1) }
    }
    switch received {
    case .bytes(let count, let drained):
      if isTimed { pace.received(count, isSending: isSendingRequest, at: loop.now) }
      noteFirstByte()
      if !drained { receiveBytes = min(receiveBytes * 2, Self.receiveBytesMax) }
      return false
    case .wouldBlock:
      return false
    case .endOfStream:
      // The kernel tells of a reset once, and has told it to who was sending.
      if !record.hasFirstByte, case .kernel(.connectionReset)? = lastFailure {
        throw fail { $0.connectionLost(into: &$1) }
      }
      do throws(ResponseError) {
        if try parser.peerClosed(unread: input.count), !hasLostSending { return true }
      } catch {
        throw fail { $0.responseFailed(error, into: &$1) }
      }
      throw fail { $0.connectionLost(into: &$1) }
    }
  }

  /// The kernel tells once how a connection broke, and from then on that the stream has ended. If the sending was told, this
  /// end may be a cut. A broken pipe is what comes behind an end in order.
  private var hasLostSending: Bool {
    if case .kernel(let error)? = lastFailure { error != .brokenPipe } else { false }
  }

  mutating func receiveOnce(from channel: Channel) throws(TLSLayer.Failure) -> ClientSocket.Received {
    do throws(TLSLayer.Failure) {
      return try layers.receive(from: channel, into: &input)
    } catch {
      // A stream that ends without `close_notify` may have been cut by an attacker. Where the framing tells the end of the
      // response, that does no harm; where the end of the stream is the end of the body, it is an error.
      guard case .tls(let error) = error, error.problem == .truncated else { throw error }
      guard phase == .receivingBody, head.framing == .untilClose else { return .endOfStream }
      throw .tls(error)
    }
  }

  mutating func endResponse(trailersAt base: Int) {
    if parser.trailers.count > 0 {
      trailers = parser.trailers
      trailerBytes.removeAll(keepingCapacity: true)
      input.lend(base..<consumed) { trailerBytes.append(copying: $0) }
    }
    dropConsumed()
    record.ended = loop.now
    decide { $0.responseEnded(into: &$1) }
    // They answer the next request if one is on its way, and this one has left.
    guard input.count > 0 else { return releaseInput() }
    if pipeline.isEmpty || machine.isSendingOnly {
      decide { $0.unsolicitedBytes(into: &$1) }
      releaseInput()
    }
  }

  /// Makes sure that the connection is still good: a server may close an idle connection at any time, and
  /// whatever bytes it sends there answer nothing.
  mutating func lookForEnd(of channel: Channel) {
    makeRoom()
    do throws(TLSLayer.Failure) {
      switch try receiveOnce(from: channel) {
      case .wouldBlock: break
      case .bytes: decide { $0.unsolicitedBytes(into: &$1) }
      case .endOfStream: decide { $0.peerClosed(into: &$1) }
      }
    } catch {
      decide { $0.connectionLost(into: &$1) }
    }
    releaseInput()
  }

  /// The same for an owner who is not about to send anything.
  mutating func lookForEnd() {
    if isIdle, let channel, channel.isReadable ? true : layers.hasInput { lookForEnd(of: channel) }
  }

  /// Keeps the head's bytes: the chunk will be overwritten, and strings are made only when somebody asks.
  mutating func keepHead() {
    swap(&head, &parser.head)
    record.responseHeadBytes += head.byteCount
    // A pipelined request's answer may have come together with the one before.
    noteFirstByte()
    input.lend((consumed - head.byteCount)..<consumed) { headBytes.assign(copying: $0) }
  }

  @inline(__always)
  mutating func noteFirstByte() {
    if !record.hasFirstByte { record.firstByte = loop.now }
  }

  /// Sees to it that there is room to receive into.
  mutating func makeRoom() {
    if input.capacity == 0 {
      input = loop.takeChunk(atLeast: receiveBytes)
      return
    }
    guard input.spareCapacity == 0 || input.count == 0 && input.capacity < receiveBytes else { return }
    // What is left is an incomplete head or trailer section, or nothing. A larger chunk takes it over.
    input.compact()
    guard input.spareCapacity == 0 || input.count == 0 else { return }
    var larger = loop.takeChunk(atLeast: max(receiveBytes, input.count * 2))
    _ = larger.append(input.bytes)
    swap(&input, &larger)
    loop.recycle(larger)
  }

  /// Gives the chunk back: a connection that waits holds no memory.
  mutating func releaseInput() {
    guard input.capacity > 0 else { return }
    record.receivedBytes += consumed
    consumed = 0
    var empty = Chunk()
    swap(&input, &empty)
    loop.recycle(empty)
  }
}
