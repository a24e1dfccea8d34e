import Foundation

/// A stream of bytes, without HTTP. Not supported in this version: the task fails with `URLError.unsupportedURL` when it is
/// resumed, and so does everything that is asked of it. Handlers are called on the delegate queue.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
  /// Reads at least `minBytes`, and at most `maxBytes`, within `timeout` seconds. The handler is told whether the end has been
  /// reached.
  open func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
    completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
  ) {
    core?.delegateQueue.async { completionHandler(nil, false, Self.unsupported) }
  }

  /// Reads at least `minBytes`, and at most `maxBytes`, within `timeout` seconds: the bytes, and whether the end has been
  /// reached.
  public func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
  ) async throws -> (Data?, Bool) { throw Self.unsupported }

  /// Writes all of it within `timeout` seconds.
  open func write(
    _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    core?.delegateQueue.async { completionHandler(Self.unsupported) }
  }

  /// Writes all of it within `timeout` seconds.
  public func write(_ data: Data, timeout: TimeInterval) async throws { throw Self.unsupported }

  /// Would make streams of the task, for the delegate.
  open func captureStreams() {}

  /// Would close the writing side when everything has been written.
  open func closeWrite() {}

  /// Would close the reading side when everything has been read.
  open func closeRead() {}

  /// Would begin TLS when everything has been read and written.
  open func startSecureConnection() {}

  /// Would end TLS when everything has been read and written, and go on without it.
  open func stopSecureConnection() {}

  override func prepare(_ transfer: Transfer) throws(URLError) { throw Self.unsupported }

  private static var unsupported: URLError { .make(.unsupportedURL, "stream tasks are not supported") }
}
