import LarkspurBytes
import LarkspurIO

extension TestServer {
  /// Writes a streamed body to the connection. Each `write` sends its bytes at once.
  ///
  /// A writer is confined to the connection's thread and valid only during the closure that receives it. Its methods
  /// throw when the peer has gone or the server stops: let the error through.
  public final class BodyWriter {
    private let wire: Wire
    private let core: ServerCore
    private let framing: Framing
    private(set) var count = 0

    init(_ wire: Wire, _ core: ServerCore, _ framing: Framing) {
      self.wire = wire
      self.core = core
      self.framing = framing
    }

    /// Sends a text in UTF-8. Blocks until the kernel has taken all of it.
    public func write(_ text: String) throws { try write(Array(text.utf8)) }

    /// Sends bytes: as one or more chunks if the body is chunked. Blocks until the kernel has taken all of them.
    public func write(_ bytes: [UInt8]) throws {
      var output: [UInt8] = []
      append(bytes[...], to: &output)
      try wire.send(output)
    }

    /// Blocks the connection for this long. Throws as soon as the peer ends its side, because no client waits any more.
    public func pause(_ duration: Duration) throws {
      guard try !wire.waitForPeerEnd(until: core.deadline(after: duration)) else { throw Wire.Failure.ended }
    }

    /// Blocks the connection until the signal has fired.
    public func wait(_ signal: Signal) throws {
      guard core.wait(for: signal) else { throw Wire.Failure.ended }
    }

    // MARK: The server's own bodies

    /// Writes a part of the content in sends of about 64 KiB, however small the chunks.
    func writeContent(_ range: Range<Int>) throws {
      guard case .chunked = framing else {
        return try Content.forEachRun(in: range) { run in
          try wire.send(run)
          count += run.count
        }
      }
      var output: [UInt8] = []
      try Content.forEachRange(in: range, atMost: chunkBytesMax) { run in
        append(Content.block[run], to: &output)
        if output.count >= 1 << 16 {
          try wire.send(output)
          output.removeAll(keepingCapacity: true)
        }
      }
      try wire.send(output)
    }

    /// Writes the last chunk and the trailers, if the body is chunked.
    func end(trailers: Fields) throws {
      guard case .chunked = framing else { return }
      try wire.send(Array("0\(chunkExtension)\r\n\(lines(trailers))\r\n".utf8))
    }

    private func append(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
      count += bytes.count
      guard case .chunked = framing else {
        output += bytes
        return
      }
      var rest = bytes
      while !rest.isEmpty {
        let chunk = rest.prefix(chunkBytesMax)
        output += Array("\(String(chunk.count, radix: 16))\(chunkExtension)\r\n".utf8)
        output += chunk
        output += [13, 10]
        rest = rest.dropFirst(chunk.count)
      }
    }

    private var chunkBytesMax: Int {
      if case .chunked(let bytes, _) = framing { max(bytes, 1) } else { .max }
    }

    private var chunkExtension: String {
      if case .chunked(_, let text) = framing { text } else { "" }
    }
  }
}

/// Returns the fields in their form on the wire, a line each.
func lines(_ fields: TestServer.Fields) -> String {
  fields.map { "\($0.name): \($0.value)\r\n" }.joined()
}
