import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The response's body on its way into a file.
///
/// A body that is delimited by its length or by the end of the stream moves through a pipe (`splice`), and never
/// through user memory. Bytes that came with the head, chunked bodies and encrypted bodies are written in the pieces in
/// which they were received. Writing blocks the loop: the kernel's page cache is as fast as memory, and a wait for a
/// slow disk cannot be avoided.
///
/// The pipe belongs to the loop. One step fills and empties it, so that no wait and no cancellation finds bytes in it.
extension ConnectionCore {
  /// Maximum number of bytes for one move through the pipe.
  private static let spliceBytesMax = 1024 * 1024

  /// Moves the next piece of the body into the file, and sets `count` to its length.
  mutating func pollBody(into file: OpenFile, count: inout Int) throws(TransportError) -> Step {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if isTimed { pace.asked(at: loop.now) }
    if failure == nil, case .active(_, .body) = machine.state, let moved = try splice(into: file) {
      count = moved
      return .ready
    }
    var piece = 0..<0
    let step = try pollBody(at: &piece)
    if case .ready = step {
      try write(piece, to: file)
      settle()
      count = piece.count
    }
    return step
  }

  private mutating func write(_ piece: Range<Int>, to file: OpenFile) throws(TransportError) {
    var error: Errno?
    let kernel = loop.kernel
    input.lend(piece) { bytes in
      do throws(Errno) {
        try file.write(bytes, by: kernel)
      } catch let failed {
        error = failed
      }
    }
    if let error { throw failToWrite(error) }
  }

  private mutating func failToWrite(_ error: Errno) -> TransportError {
    bodyFailed(.fileUnwritable(error))
    return failure ?? .connectionClosed
  }

  /// Moves bytes through the pipe.
  ///
  /// - Returns: Their number, or `nil` if the pipe cannot be used or no byte has arrived.
  private mutating func splice(into file: OpenFile) throws(TransportError) -> Int? {
    guard layers.isPlain, sender == .done, canSplice, copies.bytesMax == 0, input.count == consumed, let channel,
      channel.mayReceive
    else {
      return nil
    }
    let limit = min(parser.passableBytes, Self.spliceBytesMax, isTimed ? pace.receivingAllowance(at: loop.now) : .max)
    guard limit > 0, let pipe = loop.takePipe() else { return nil }
    defer { loop.recycle(pipe) }
    releaseInput()
    do throws(Errno) {
      guard case .bytes(let count, _) = try channel.fill(pipe, atMost: limit) else { return nil }
      noteFirstByte()
      record.receivedBytes += count
      if isTimed {
        pace.received(count, isSending: isSendingRequest, at: loop.now)
        pace.answered(at: loop.now)
      }
    } catch .invalidArgument {
      // The kernel cannot splice from a socket of this kind.
      canSplice = false
      return nil
    } catch {
      lastFailure = .kernel(error)
      throw fail { $0.connectionLost(into: &$1) }
    }
    let count = pipe.count
    do throws(Errno) {
      try pipe.empty(into: file)
    } catch {
      throw failToWrite(error)
    }
    note(.bodyReceived(bytes: count))
    parser.passed(count)
    settle()
    return count
  }
}
