import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// Receives from the channel, for the parser.
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

  /// Receives once.
  ///
  /// - Returns: `true` if the end of the stream has ended the response.
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
      if !drained, !pace.isLimited { receiveBytes = min(receiveBytes * 2, Self.receiveBytesMax) }
      return false
    case .wouldBlock:
      return false
    case .endOfStream:
      do throws(ResponseError) {
        if try parser.peerClosed(unread: input.count) { return true }
      } catch {
        throw fail { $0.responseFailed(error, into: &$1) }
      }
      throw fail { $0.connectionLost(into: &$1) }
    }
  }

  mutating func receiveOnce(from channel: Channel) throws(TLSLayer.Failure) -> ClientSocket.Received {
    do throws(TLSLayer.Failure) {
      return try layers.receive(from: channel, into: &input)
    } catch {
      // A stream that ends without `close_notify` may have been cut by an attacker. If the framing marks the end of the
      // response, a cut is detected anyway. If the end of the stream is the end of the body, it is an error.
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
    // The bytes that are left belong to the next response if a request is queued and this request has been sent.
    guard input.count > 0 else { return releaseInput() }
    if pipeline.isEmpty || machine.isSendingOnly {
      decide { $0.unsolicitedBytes(into: &$1) }
      releaseInput()
    }
  }

  /// Receives on an idle connection, to find out whether it is still good. The server may close an idle connection at
  /// any time, and any bytes that it sends are unsolicited. Either closes the connection.
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

  /// Checks an idle connection in the same way if there is anything to receive.
  mutating func lookForEnd() {
    if isIdle, let channel, channel.isReadable ? true : layers.hasInput { lookForEnd(of: channel) }
  }

  /// Keeps the head's bytes, because the chunk will be overwritten. Strings are made on demand.
  mutating func keepHead() {
    swap(&head, &parser.head)
    record.responseHeadBytes += head.byteCount
    // The response to a pipelined request may have arrived together with the response before it.
    noteFirstByte()
    input.lend((consumed - head.byteCount)..<consumed) { headBytes.assign(copying: $0) }
  }

  @inline(__always)
  mutating func noteFirstByte() {
    if !record.hasFirstByte { record.firstByte = loop.now }
  }

  /// Ensures that there is room to receive into.
  mutating func makeRoom() {
    if input.capacity == 0 {
      input = loop.takeChunk(atLeast: receiveBytes)
      return
    }
    guard input.spareCapacity == 0 || input.count == 0 && input.capacity < receiveBytes else { return }
    // An incomplete head or trailer section is left, or nothing. A larger chunk takes it over.
    input.compact()
    guard input.spareCapacity == 0 || input.count == 0 else { return }
    var larger = loop.takeChunk(atLeast: max(receiveBytes, input.count * 2))
    _ = larger.append(input.bytes)
    swap(&input, &larger)
    loop.recycle(larger)
  }

  /// Gives the chunk back to the loop: a waiting connection holds no chunk.
  mutating func releaseInput() {
    guard input.capacity > 0 else { return }
    record.receivedBytes += consumed
    consumed = 0
    var empty = Chunk()
    swap(&input, &empty)
    loop.recycle(empty)
  }
}
