import Foundation
import Larkspur
import Synchronization

/// A delegate that records the progress of sending and provides body streams.
final class UploadRecorder: NSObject, URLSessionTaskDelegate, URLSessionDataDelegate {
  struct Sent: Hashable {
    var bytes: Int64
    var total: Int64
    var expected: Int64
  }

  let sent = Mutex<[Sent]>([])
  let asked = Mutex(0)
  private let streams: (@Sendable () -> InputStream?)?

  init(streams: (@Sendable () -> InputStream?)? = nil) { self.streams = streams }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    sent.withLock {
      $0.append(Sent(bytes: bytesSent, total: totalBytesSent, expected: totalBytesExpectedToSend))
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    asked.withLock { $0 += 1 }
    completionHandler(streams?())
  }
}

/// A program's own stream that alternates between a few bytes and none, and reports this in `hasBytesAvailable`.
final class HesitantStream: InputStream {
  private var rest: ArraySlice<UInt8>
  private var hesitates = true
  private var status = Stream.Status.notOpen
  private let fails: Bool

  init(_ bytes: [UInt8], fails: Bool = false) {
    rest = bytes[...]
    self.fails = fails
    super.init(data: Data())
  }

  override func open() { status = .open }
  override func close() { status = .closed }
  override var streamStatus: Stream.Status { status }
  override var streamError: (any Error)? { status == .error ? CocoaError(.fileReadCorruptFile) : nil }
  override var hasBytesAvailable: Bool { status == .open && hesitates && !(rest.isEmpty && !fails) }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    hesitates.toggle()
    if !hesitates { return 0 }
    if rest.isEmpty {
      status = fails ? .error : .atEnd
      return fails ? -1 : 0
    }
    let piece = rest.prefix(min(len, 100))
    for (index, byte) in piece.enumerated() { buffer[index] = byte }
    rest = rest.dropFirst(piece.count)
    if rest.isEmpty, !fails { status = .atEnd }
    return piece.count
  }
}
