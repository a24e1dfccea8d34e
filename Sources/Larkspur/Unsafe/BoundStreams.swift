import Foundation

extension Foundation.Stream {
  /// Creates an output stream and an input stream that reads the bytes written to the output stream.
  ///
  /// Apple's systems have this method in Foundation; on Linux Larkspur provides it. The input stream can be the body of
  /// a request: ``URLRequest/httpBodyStream``, or a delegate's answer to
  /// ``URLSessionTaskDelegate/urlSession(_:task:needNewBodyStream:)``. The program writes the body while the request is
  /// under way, also while it reads the response.
  ///
  /// Both streams can be used from any thread, and need no run loop:
  ///
  /// - `write` blocks while the buffer is full, until at least one byte fits, and returns the number of bytes that
  ///   fitted. `read` blocks while the buffer is empty. Do not call either from an `async` function: call them from the
  ///   program's own thread or dispatch queue, or only after `hasSpaceAvailable` or `hasBytesAvailable` has shown that
  ///   the call does not block.
  /// - When the output stream has been closed or released, the input stream returns the rest and then ends: `read`
  ///   returns 0 and `streamStatus` is `.atEnd`.
  /// - When the input stream has been closed or released, as a session does when a task is over, `write` returns -1,
  ///   `streamStatus` is `.error` and `streamError` is `EPIPE` (`NSPOSIXErrorDomain`). A task that is cancelled
  ///   while it waits for the program's next bytes closes the stream within a second.
  /// - A stream that is not open, or is closed while a call blocks, returns -1 and has no error.
  ///
  /// The `delegate` is called on each run loop in which the stream is scheduled, once for each event: for
  /// `.hasBytesAvailable` again after the next read, for `.hasSpaceAvailable` again after the next write. The run loop
  /// has to run: in a program whose `main` is `async`, `RunLoop.main` does not. The streams have no properties:
  /// `property(forKey:)` returns `nil`, and `setProperty(_:forKey:)` returns `false`.
  ///
  /// - Parameters:
  ///   - bufferSize: Maximum number of bytes between the two streams; at least 1. Memory is allocated as bytes are
  ///     written.
  ///   - inputStream: Set to the stream to read from. It is not open yet.
  ///   - outputStream: Set to the stream to write to. It is not open yet.
  public class func getBoundStreams(
    withBufferSize bufferSize: Int, inputStream: inout InputStream?, outputStream: inout OutputStream?
  ) {
    let buffer = BoundBuffer(capacity: bufferSize)
    inputStream = BoundInputStream(buffer)
    outputStream = BoundOutputStream(buffer)
  }
}

/// The reading side of bound streams.
final class BoundInputStream: InputStream {
  private let buffer: BoundBuffer

  init(_ buffer: BoundBuffer) {
    self.buffer = buffer
    super.init(data: Data())
    buffer.setStream(self, of: .input)
  }

  deinit { buffer.close(.input) }

  override func read(_ target: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
    buffer.read(atMost: length) { bytes in
      // Safe: the caller lends `length` bytes for the call, and `bytes` has no more.
      _ = unsafe UnsafeMutableBufferPointer(start: target, count: bytes.count).update(fromContentsOf: bytes)
    }
  }

  /// Returns `false`: the bytes have no stable address.
  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override var hasBytesAvailable: Bool { buffer.isReady(.input) }

  override func open() { buffer.open(.input) }
  override func close() { buffer.close(.input) }
  override var streamStatus: Stream.Status { buffer.status(of: .input) }
  override var streamError: (any Error)? { buffer.error(of: .input) }
  override var delegate: (any StreamDelegate)? {
    get { buffer.delegate(of: .input) }
    set { buffer.setDelegate(newValue, of: .input) }
  }
  override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    buffer.schedule(.input, in: runLoop, forMode: mode)
  }
  override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    buffer.unschedule(.input, from: runLoop, forMode: mode)
  }
  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }
}

/// The writing side of bound streams.
final class BoundOutputStream: OutputStream {
  private let buffer: BoundBuffer

  init(_ buffer: BoundBuffer) {
    self.buffer = buffer
    super.init(toMemory: ())
    buffer.setStream(self, of: .output)
  }

  /// Creates an output stream without a reader, because `OutputStream` requires this initializer.
  required convenience init(toMemory: ()) {
    let buffer = BoundBuffer(capacity: 1)
    buffer.close(.input)
    self.init(buffer)
  }

  deinit { buffer.close(.output) }

  override func write(_ source: UnsafePointer<UInt8>, maxLength length: Int) -> Int {
    // Safe: the caller lends `length` bytes for the call.
    unsafe buffer.write(UnsafeBufferPointer(start: source, count: max(length, 0)))
  }

  override var hasSpaceAvailable: Bool { buffer.isReady(.output) }

  override func open() { buffer.open(.output) }
  override func close() { buffer.close(.output) }
  override var streamStatus: Stream.Status { buffer.status(of: .output) }
  override var streamError: (any Error)? { buffer.error(of: .output) }
  override var delegate: (any StreamDelegate)? {
    get { buffer.delegate(of: .output) }
    set { buffer.setDelegate(newValue, of: .output) }
  }
  override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    buffer.schedule(.output, in: runLoop, forMode: mode)
  }
  override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    buffer.unschedule(.output, from: runLoop, forMode: mode)
  }
  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }
}
