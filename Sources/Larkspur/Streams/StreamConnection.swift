import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// The connection of a stream task. It belongs to its loop.
///
/// Theory of operation. Reads are performed one after another, and so are writes, each beside the other. Bytes are
/// received only while a read needs them, so that TCP's flow control reaches the program. `closeRead` waits for the
/// reads before it, `closeWrite` for the writes before it. `startSecureConnection` and `captureStreams` wait for all
/// operations before them, and hold back all operations behind them.
final class StreamConnection: LiveConnection, ByteStreamUser, @unchecked Sendable {
  /// What the owner has to do.
  enum Event: Sendable {
    /// TLS begins: all operations before it are complete.
    case secure
    case capture
    /// Both directions are closed, or the connection has failed.
    case end(URLError?)
  }

  let loop: ClientLoop
  /// Released with the task's end.
  var owner: AnyObject?
  private var stream: ByteStream?
  private var reads: [StreamOperation] = []
  private var writes: [StreamOperation] = []
  /// The operation that waits for all operations before it, and those behind it.
  private var heldBack: [StreamOperation] = []
  /// Bytes of a read that timed out. The next read gets them first.
  private var unread = Data()
  /// Whether the owner has been notified to take the connection over.
  private var isHandingOver = false
  private var hasReadEnd = false
  private var isReadClosed = false
  private var isWriteClosed = false
  /// The error of a send that found the connection lost. The task ends with it, also if nothing is read any more.
  private var loss: URLError?
  private var failure: URLError?
  /// The event that has arrived and has not been taken.
  private var event: Event?
  // These keep the load, up to `release`.
  private var whenEventful: (() -> Void)?
  private var notify: ((_ isReadClosed: Bool) -> Void)?

  /// Maximum number of bytes of a write that are given to the connection at once.
  private static let pieceBytesMax = 64 * 1024

  /// - Parameters:
  ///   - whenEventful: Called when an event has arrived.
  ///   - notify: Called once for each direction when it is closed.
  init(
    on loop: ClientLoop, whenEventful: @escaping () -> Void, notify: @escaping (_ isReadClosed: Bool) -> Void
  ) {
    self.loop = loop
    self.whenEventful = whenEventful
    self.notify = notify
  }

  // MARK: - The owner

  /// Starts to use a connection, the first one or one with TLS.
  func use(_ tunnel: Tunnel) {
    let stream = ByteStream(over: tunnel)
    self.stream = stream
    isHandingOver = false
    stream.start(for: self)
    let held = heldBack
    heldBack = []
    for operation in held { start(operation) }
    proceed()
  }

  var hasEvent: Bool { event != nil }
  func takeEvent() -> Event? { event.take() }

  /// Takes the connection from this object, after `secure` or `capture`.
  func takeTunnel() -> Tunnel? {
    // Bytes that came before the handshake are a part of it, never of the plaintext that follows.
    let taken = [UInt8](unread)
    unread = Data()
    return stream.take()?.detach(behind: taken)
  }

  /// Finishes the operation at which this object waits.
  func endHolding() { if !heldBack.isEmpty { finish(heldBack.removeFirst()) } }

  /// Ends the connection, because the load has been interrupted.
  func interrupt(_ error: URLError) {
    end(error)
    report(.end(error))
  }

  /// Ends the connection.
  func end(_ error: URLError?) {
    guard failure == nil else { return }
    let error = error ?? Self.closed
    failure = error
    for operation in reads + writes + heldBack { finish(operation, error) }
    reads = []
    writes = []
    heldBack = []
    stream?.close()
    stream = nil
  }

  /// Ends the connection, and releases the load, because the task is complete. The program may keep the task.
  func release(_ error: URLError?) {
    end(error)
    (whenEventful, notify, owner) = (nil, nil, nil)
  }

  private func report(_ event: Event) {
    self.event = event
    whenEventful?()
  }

  static var closed: URLError {
    .make(.networkConnectionLost, "the stream is closed", underlying: POSIXError(.ENOTCONN))
  }

  // MARK: - Operations

  func start(_ operation: LiveOperation) {
    guard let operation = operation as? StreamOperation else { return }
    if let failure { return finish(operation, failure) }
    // An operation that was held back has its timer already.
    if let timeout = operation.timeout, operation.timer == nil {
      operation.timer = loop.startTimer(loop.now.advanced(by: timeout)) { [self, operation] in timedOut(operation) }
    }
    guard heldBack.isEmpty, stream != nil else { return heldBack.append(operation) }
    switch operation.kind {
    case .read, .closeRead: reads.append(operation)
    case .write, .closeWrite: writes.append(operation)
    case .startSecureConnection, .captureStreams: heldBack.append(operation)
    }
    proceed()
  }

  func forget(_ operation: LiveOperation) {
    guard let operation = operation as? StreamOperation else { return }
    drop(operation)
    proceed()
  }

  private func timedOut(_ operation: StreamOperation) {
    drop(operation)
    finish(operation, URLError.make(.timedOut, "The stream operation timed out."))
    proceed()
  }

  /// Removes an operation. The bytes that a read has got go to the next one; a write that has begun is sent whole,
  /// because half of it would spoil the stream.
  private func drop(_ operation: StreamOperation) {
    if let timer = operation.timer.take() { loop.stopTimer(timer) }
    heldBack.removeAll { $0 === operation }
    switch operation.kind {
    case .read:
      reads.removeAll { $0 === operation }
      unread.append(operation.data)
      operation.data = Data()
    case .write(let data):
      // Before the write, which may call `outputDrained`.
      writes.removeAll { $0 === operation }
      if operation.written > 0, operation.written < data.count {
        stream?.write([UInt8](data.dropFirst(operation.written)))
      }
    case .closeRead, .closeWrite, .startSecureConnection, .captureStreams: break
    }
  }

  private func finish(_ operation: StreamOperation, _ error: URLError? = nil) {
    if let timer = operation.timer.take() { loop.stopTimer(timer) }
    operation.finish(error)
  }

  /// Advances everything that can advance.
  private func proceed() {
    advanceReads()
    advanceWrites()
    guard failure == nil else { return }
    if isReadClosed, isWriteClosed {
      end(loss)
      return report(.end(loss))
    }
    if !isHandingOver, reads.isEmpty, writes.isEmpty, let first = heldBack.first, let stream, stream.isDrained {
      isHandingOver = true
      switch first.kind {
      case .startSecureConnection: report(.secure)
      case .captureStreams: report(.capture)
      default: break
      }
    }
    if acceptsBytes { stream?.resumeReceiving() }
  }

  // MARK: - Reading

  var acceptsBytes: Bool {
    guard case .read? = reads.first?.kind else { return false }
    return !isReadClosed && failure == nil
  }

  func received(_ bytes: Span<UInt8>) -> Int {
    var taken = 0
    while taken < bytes.count, acceptsBytes, let read = reads.first, case .read(let min, let max) = read.kind {
      let count = Swift.min(bytes.count - taken, max - read.data.count)
      read.data.append(copying: bytes.extracting(taken..<(taken + count)))
      taken += count
      if read.data.count >= Self.enough(min, max) { finish(reads.removeFirst()) }
      advanceReads()
    }
    // An operation may have waited for the last read.
    if reads.isEmpty { proceed() }
    return taken
  }

  func receivedEnd() {
    hasReadEnd = true
    proceed()
  }

  /// The number of bytes with which a read is complete. A read of any minimum waits for a byte, unless its maximum is
  /// 0.
  private static func enough(_ min: Int, _ max: Int) -> Int { Swift.min(Swift.max(min, 1), max) }

  /// Finishes the reads that need no bytes from the connection.
  private func advanceReads() {
    while let first = reads.first {
      switch first.kind {
      case .read(let min, let max):
        if !unread.isEmpty {
          let count = Swift.min(unread.count, max - first.data.count)
          first.data.append(unread.prefix(count))
          unread = Data(unread.dropFirst(count))
        }
        guard first.data.count < Self.enough(min, max) else {
          finish(reads.removeFirst())
          continue
        }
        guard hasReadEnd || isReadClosed else { return }
        first.isAtEnd = true
        reads.removeFirst()
        finish(first, isReadClosed && first.data.isEmpty ? Self.closed : nil)
      case .closeRead:
        finish(reads.removeFirst())
        closeReading()
      default: reads.removeFirst()
      }
    }
    if hasReadEnd { closeReading() }
  }

  private func closeReading() {
    guard !isReadClosed else { return }
    isReadClosed = true
    notify?(true)
  }

  // MARK: - Writing

  /// Gives the connection the next bytes once it has sent those before.
  private func advanceWrites() {
    while failure == nil, let stream, stream.isDrained, let first = writes.first {
      switch first.kind {
      case .write(let data):
        guard !isWriteClosed else {
          finish(writes.removeFirst(), Self.closed)
          continue
        }
        guard first.written < data.count else {
          finish(writes.removeFirst())
          continue
        }
        let start = data.startIndex + first.written
        let count = min(data.count - first.written, Self.pieceBytesMax)
        first.written += count
        stream.write([UInt8](data[start..<(start + count)]))
      case .closeWrite:
        finish(writes.removeFirst())
        if !isWriteClosed {
          closeWriting()
          stream.closeSending()
        }
      default: writes.removeFirst()
      }
    }
  }

  func outputDrained() { proceed() }

  private func closeWriting() {
    guard !isWriteClosed else { return }
    isWriteClosed = true
    notify?(false)
  }

  func sendingFailed(_ error: TransportError) {
    let failed = writes
    writes = []
    let failure = URLError(error, url: nil)
    if !error.followsOrderlyEnd { loss = failure }
    for operation in failed { finish(operation, failure) }
    closeWriting()
    proceed()
  }

  func failed(_ error: TransportError) {
    let error = URLError(error, url: nil)
    end(error)
    report(.end(error))
  }
}
