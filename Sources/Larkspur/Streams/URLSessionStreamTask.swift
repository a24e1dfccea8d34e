import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// A task for a stream of bytes without HTTP: a TCP connection to a host and port, through the session's proxies, with
/// or without TLS.
///
/// The connection is opened when the task is first resumed. Operations may be called before that. Reads are performed
/// one after another in the order of their calls, and so are writes; a read and a write may be in progress at the same
/// time. Nothing is received while no read waits, so that a fast server is slowed down by TCP's flow control.
///
/// The task is complete when both directions are closed, with `error` `nil`, or when the connection has failed. Until
/// then its session keeps it. The request's time limit counts while the connection is opened and during the TLS
/// handshake; after that only the limits of the operations and the resource's limit
/// (``URLSessionConfiguration/timeoutIntervalForResource``) count. Completion handlers are called on the delegate
/// queue. For any thread.
///
/// ```swift
/// let task = session.streamTask(withHostName: "example.org", port: 79)
/// task.resume()
/// try await task.write(Data("larkspur\r\n".utf8), timeout: 10)
/// let (answer, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 4096, timeout: 10)
/// ```
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
  private let gate = LiveGate()
  private let host: String
  private let port: Int

  init(_ core: SessionCore, host: String, port: Int) {
    self.host = host
    self.port = port
    super.init(core, request: nil, output: .delegate)
  }

  /// Reads at least `minBytes` and at most `maxBytes` bytes.
  ///
  /// - Parameters:
  ///   - minBytes: The number of bytes to wait for; at least one byte is waited for in any case. Fewer bytes come only
  ///     at the end of the stream.
  ///   - maxBytes: Maximum number of bytes.
  ///   - timeout: In seconds; 0 for no limit. A read whose time is up fails with `URLError.timedOut`, and its bytes go
  ///     to the next read.
  ///   - completionHandler: Called with the bytes, whether the server has closed its side behind them, and the error.
  open func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
    completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
  ) {
    start(.read(min: max(minBytes, 0), max: max(maxBytes, 0)), timeout: timeout) {
      completionHandler($0.failure == nil ? $0.data : nil, $0.isAtEnd, $0.failure)
    }
  }

  /// Reads at least `minBytes` and at most `maxBytes` bytes: see
  /// ``readData(ofMinLength:maxLength:timeout:completionHandler:)``. Cancelling the Swift task ends the wait with
  /// `CancellationError`, and nothing that has been received is lost.
  ///
  /// - Returns: The bytes, and whether the server has closed its side behind them.
  public func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
  ) async throws -> (Data?, Bool) {
    let operation = StreamOperation(
      .read(min: max(minBytes, 0), max: max(maxBytes, 0)), timeout: timeout, through: gate)
    try await operation.run()
    return (operation.data, operation.isAtEnd)
  }

  /// Writes all of `data`.
  ///
  /// - Parameters:
  ///   - data: The bytes.
  ///   - timeout: In seconds; 0 for no limit. A write whose time is up before its first byte was sent is dropped; any
  ///     other one is sent to its end, because a part of it would spoil the stream.
  ///   - completionHandler: Called when the kernel or TLS has taken the bytes, which does not mean that the server has,
  ///     or with the error.
  open func write(
    _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    start(.write(data), timeout: timeout) { completionHandler($0.failure) }
  }

  /// Writes all of `data`: see ``write(_:timeout:completionHandler:)``. Cancelling the Swift task ends the wait with
  /// `CancellationError`.
  public func write(_ data: Data, timeout: TimeInterval) async throws {
    try await StreamOperation(.write(data), timeout: timeout, through: gate).run()
  }

  /// Completes the operations before it, and passes the connection to the delegate as two streams
  /// (``URLSessionStreamDelegate/urlSession(_:streamTask:didBecome:outputStream:)``). The task is complete then.
  open func captureStreams() { start(.captureStreams) }

  /// Closes the sending side once everything has been written. The server may continue to send.
  open func closeWrite() { start(.closeWrite) }

  /// Closes the reading side once the reads before it are complete. Later reads fail. What the server sends then is not
  /// read.
  open func closeRead() { start(.closeRead) }

  /// Makes the TLS handshake once the operations before it are complete, with the session's trust settings, pins,
  /// challenges and client certificates. Operations behind it use TLS. If the handshake fails, the task fails.
  open func startSecureConnection() { start(.startSecureConnection) }

  /// Closes the secure connection: sends `close_notify` once everything has been written, as ``closeWrite()`` does.
  /// As on Darwin, a connection does not return to plain text.
  open func stopSecureConnection() { closeWrite() }

  private func start(
    _ kind: StreamOperation.Kind, timeout: TimeInterval = 0,
    _ handle: @escaping @Sendable (StreamOperation) -> Void = { _ in }
  ) {
    guard let core else { return }
    StreamOperation(kind, timeout: timeout, through: gate, on: core.delegateQueue, handle: handle).start()
  }

  override func prepare(_ load: Load) throws(URLError) {
    guard load.live == nil else { return }
    guard !host.isEmpty, let port = UInt16(exactly: port), port > 0 else {
      throw URLError.make(.cannotConnectToHost, "no server has port \(port)")
    }
    load.live = StreamLoad(through: gate, to: host, port: port)
  }

  /// Continues the connection of a data task.
  func load(over tunnel: Tunnel) -> any LiveLoad {
    StreamLoad(through: gate, to: host, port: UInt16(clamping: port), over: tunnel)
  }

  override func ended(_ failure: (any Error)?) { gate.close(failure ?? StreamConnection.closed) }
}
