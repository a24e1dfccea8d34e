import Foundation

/// A task for a stream of bytes without HTTP. Not supported in this version: when the task is resumed it fails with
/// `URLError.unsupportedURL`, and so does every operation on it. Completion handlers are called on the delegate queue.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {
  /// Would read at least `minBytes` and at most `maxBytes` bytes within `timeout` seconds, and report whether the end
  /// has been reached. Fails in this version.
  open func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
    completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
  ) {
    core?.delegateQueue.async { completionHandler(nil, false, Self.unsupported) }
  }

  /// Would read at least `minBytes` and at most `maxBytes` bytes within `timeout` seconds, and return the bytes and
  /// whether the end has been reached. Throws in this version.
  public func readData(
    ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval
  ) async throws -> (Data?, Bool) { throw Self.unsupported }

  /// Would write all of `data` within `timeout` seconds. Fails in this version.
  open func write(
    _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) {
    core?.delegateQueue.async { completionHandler(Self.unsupported) }
  }

  /// Would write all of `data` within `timeout` seconds. Throws in this version.
  public func write(_ data: Data, timeout: TimeInterval) async throws { throw Self.unsupported }

  /// Would convert the task to streams, for the delegate. Does nothing in this version.
  open func captureStreams() {}

  /// Would close the writing side once everything has been written. Does nothing in this version.
  open func closeWrite() {}

  /// Would close the reading side once everything has been read. Does nothing in this version.
  open func closeRead() {}

  /// Would start TLS once everything has been read and written. Does nothing in this version.
  open func startSecureConnection() {}

  /// Would end TLS once everything has been read and written, and continue without it. Does nothing in this version.
  open func stopSecureConnection() {}

  override func prepare(_ transfer: Transfer) throws(URLError) { throw Self.unsupported }

  private static var unsupported: URLError { .make(.unsupportedURL, "stream tasks are not supported") }
}
