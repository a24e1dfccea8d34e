import Foundation
import LarkspurBytes
import LarkspurTransport

/// The two directions of a stream task's connection as Foundation's streams.
///
/// Each direction is a pair of bound streams, of which the program has one end and this object the other. The object
/// lives until the program has closed or released both of its streams, or the connection has failed. Bytes are received
/// while there is room in the buffer. The error of a lost connection is the streams' error; the input stream first
/// returns what arrived before.
final class CapturedStreams: ByteStreamUser, LoopCallback, @unchecked Sendable {
  /// The size of each buffer in bytes.
  private static let bufferSize = 64 * 1024

  private let stream: ByteStream
  private let incoming = BoundBuffer(capacity: bufferSize)
  private let outgoing = BoundBuffer(capacity: bufferSize)
  private var isSendingClosed = false

  /// Returns the program's streams, once. They are not open yet, and nothing but the program keeps them: its release
  /// closes them.
  func makeStreams() -> (InputStream, OutputStream) { (BoundInputStream(incoming), BoundOutputStream(outgoing)) }

  init(over tunnel: Tunnel) {
    stream = ByteStream(over: tunnel)
    incoming.open(.output)
    outgoing.open(.input)
    let loop = stream.loop
    for buffer in [incoming, outgoing] {
      buffer.setObserver { [weak self] in if let self { loop.submit(self, inline: false) } }
    }
    stream.start(for: self)
  }

  /// Moves what can be moved, after the program has read, written or closed.
  func perform() {
    while stream.isDrained, !isSendingClosed, outgoing.isReady(.input) {
      var bytes: [UInt8] = []
      _ = outgoing.read(atMost: Self.bufferSize) { bytes = Array($0) }
      stream.write(bytes)
    }
    if !isSendingClosed, stream.isDrained, outgoing.status(of: .input) == .atEnd {
      isSendingClosed = true
      stream.closeSending()
    }
    let isRead = incoming.status(of: .output) != .open
    if isRead, isSendingClosed, stream.isDrained { return stream.close() }
    if !isRead { stream.resumeReceiving() }
  }

  var acceptsBytes: Bool { incoming.isReady(.output) }

  func received(_ bytes: Span<UInt8>) -> Int { incoming.writeNow(bytes) }

  func receivedEnd() { incoming.close(.output) }

  func outputDrained() { perform() }

  func sendingFailed(_ error: TransportError) {
    isSendingClosed = true
    outgoing.close(.input, failure: URLError(error, url: nil))
  }

  func failed(_ error: TransportError) {
    let failure = URLError(error, url: nil)
    incoming.close(.output, failure: failure)
    outgoing.close(.input, failure: failure)
  }
}
