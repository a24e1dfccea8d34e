import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The copies of a request's and a response's body for an observer that wants them.
struct BodyCopies {
  /// Maximum number of bytes of each body to copy: 0 for an observer that wants no bodies.
  var bytesMax = 0
  /// The number of bytes of the current response that may still be copied.
  private var responseLeft = 0
  /// The copy of the current request's body, until the observer gets it.
  private var request: [UInt8] = []
  /// The writer of a body that is not known yet.
  private var writer: BodyWriter?

  /// Begins with the bodies of an exchange.
  mutating func begin(_ body: RequestBody, _ upload: Upload, on loop: ClientLoop) {
    (responseLeft, request, writer) = (bytesMax, [], nil)
    guard bytesMax > 0 else { return }
    switch body {
    case .none: break
    case .bytes(let bytes): request = Array(bytes.prefix(bytesMax))
    case .lent(let count, let copy): request = copy(0..<min(count, bytesMax))
    case .file(let file, let offset, let length, _):
      let count = min(length, bytesMax)
      var chunk = loop.takeChunk(atLeast: count)
      // A file that cannot be read fails the exchange by itself.
      _ = try? file.read(at: offset, into: &chunk, by: loop.kernel)
      request.append(copying: chunk.bytes.extracting(first: count))
      loop.recycle(chunk)
    case .produced:
      guard case .produced(let writer) = upload else { return }
      writer.copyBytesMax = bytesMax
      self.writer = writer
    }
  }

  /// Returns the copy of the request's body, once.
  ///
  /// - Parameter isSent: Whether the whole body has been sent. What a closure writes is known then only.
  mutating func takeRequest(isSent: Bool) -> [UInt8] {
    if let writer {
      guard isSent else { return [] }
      request = writer.copied
      self.writer = nil
    }
    defer { request = [] }
    return request
  }

  /// Returns the part of a piece of the response's body to copy.
  mutating func part(of piece: Range<Int>) -> Range<Int> {
    let part = piece.prefix(responseLeft)
    responseLeft -= part.count
    return part
  }
}

/// What an observer gets. Called only if there is one.
extension ConnectionCore {
  mutating func noteStart(of request: RequestHead) {
    let bytes = output.byteCount + upload.byteCount
    note(.requestStarted(head: request.bytes, bytes: bytes, isReused: exchangeNumber > 1))
    noteRequestContent(isSent: false)
  }

  mutating func noteSent() {
    noteRequestContent(isSent: true)
    note(.requestSent)
  }

  private mutating func noteRequestContent(isSent: Bool) {
    guard copies.bytesMax > 0 else { return }
    let content = copies.takeRequest(isSent: isSent)
    if !content.isEmpty { note(.requestContent(content)) }
  }

  /// Notes a piece of the response's body, a range of `input`.
  mutating func noteBody(_ piece: Range<Int>) {
    note(.bodyReceived(bytes: piece.count))
    let part = copies.part(of: piece)
    guard !part.isEmpty else { return }
    var content: [UInt8] = []
    input.lend(part) { content.append(copying: $0) }
    note(.responseContent(content))
  }
}
