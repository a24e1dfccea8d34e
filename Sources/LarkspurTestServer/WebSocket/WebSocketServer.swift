import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import Synchronization

/// A WebSocket server on the loopback interface, with a thread for each connection.
package final class WebSocketServer: Sendable {
  /// A request that is no opening handshake, or a message that is too large.
  package struct Refusal: Error {}

  package struct Frame: Hashable, Sendable {
    package var opcode: WebSocketOpcode
    package var payload: [UInt8]

    package init(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
      self.opcode = opcode
      self.payload = payload
    }

    /// Creates a Close frame. Without a code it is empty.
    package static func close(_ code: UInt16?, _ reason: String = "") -> Frame {
      guard let code else { return Frame(.close, []) }
      return Frame(.close, [UInt8(code >> 8), UInt8(code & 0xff)] + Array(reason.utf8))
    }
  }

  package let port: UInt16
  private let listener: BlockingListener
  private let sockets = Mutex<[BlockingSocket]>([])

  /// Starts a server on a free port.
  ///
  /// - Parameters:
  ///   - compression: The parameters of permessage-deflate to agree on if the client offers it, or `nil` for none.
  ///   - serve: Called for each connection behind its opening handshake, on the connection's thread. The
  ///     connection ends when the closure returns or throws.
  package init(
    compression: WebSocketCompression? = nil, _ serve: @escaping @Sendable (Conversation) throws -> Void
  ) throws(Errno) {
    listener = try BlockingListener(address: .loopback(port: 0))
    port = listener.port
    try SystemThread(name: "socket-server") { [self] in
      while let socket = try? listener.accept() {
        sockets.withLock { $0.append(socket) }
        let thread = try? SystemThread(name: "socket") {
          if let conversation = try? Conversation(socket, compression) { try? serve(conversation) }
          socket.shutDown()
        }
        thread?.detach()
      }
    }.detach()
  }

  /// Ends all connections, and accepts no more.
  package func stop() {
    listener.shutDown()
    for socket in sockets.withLock({ $0 }) { socket.shutDown() }
  }

  /// Returns the URL of a path on this server.
  package func url(_ path: String = "/") -> String { "ws://127.0.0.1:\(port)\(path)" }

  /// One connection behind its opening handshake, confined to its thread. Calls block.
  package final class Conversation {
    private static let headBytesMax = 1 << 16
    private static let frameBytesMax = 64 << 20

    private let socket: BlockingSocket
    private var fields: [(name: String, value: String)] = []
    /// Received bytes, parsed up to `position`.
    private var bytes: [UInt8] = []
    private var position = 0
    private var parser: WebSocketFrameParser

    /// Answers the opening handshake: with the first subprotocol that the client offers.
    fileprivate init(_ socket: BlockingSocket, _ compression: WebSocketCompression?) throws {
      self.socket = socket
      parser = WebSocketFrameParser(role: .server, allowsCompression: compression != nil)
      try readHead()
      let offer = try WebSocketOffer(fields: values)
      let agreement = WebSocketAgreement(
        subprotocol: offer.protocols.first, compression: offer.compressions.isEmpty ? nil : compression)
      guard let answer = offer.responseFields(agreement, sha1: { MessageDigest.of($0, .sha1) }) else { throw Refusal() }
      let lines = answer.map { "\($0.name): \($0.value)\r\n" }.joined()
      try socket.send(Array("HTTP/1.1 101 Switching Protocols\r\n\(lines)\r\n".utf8))
    }

    /// Returns the values of all fields of the request with a name.
    package func values(_ name: String) -> [String] {
      fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// - Returns: The next frame, unmasked, or `nil` at the end of the stream.
    package func receive() throws -> Frame? {
      var header: WebSocketFrameHeader?
      var payload: [UInt8] = []
      while true {
        let piece = bytes
        switch try parser.next(in: piece.span, consumed: &position) {
        case .needMore:
          bytes = try socket.receive(atMost: 1 << 16)
          position = 0
          if bytes.isEmpty { return nil }
        case .frame(let next):
          guard next.length <= Self.frameBytesMax else { throw Refusal() }
          header = next
        case .payload(let range, let endsFrame):
          payload += piece[range]
          guard endsFrame, let header else { continue }
          if let mask = header.mask { Masking.apply(mask, to: &payload, in: payload.indices) }
          return Frame(header.opcode, payload)
        }
      }
    }

    package func send(_ frame: Frame) throws {
      var bytes: [UInt8] = []
      WebSocketFrameWriter.append(frame.opcode, payload: frame.payload.span, mask: nil, to: &bytes)
      try send(bytes)
    }

    /// Sends bytes that need not be frames.
    package func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }

    /// Sends each message back, answers pings and the Close.
    package func echo() throws {
      while let frame = try receive() {
        try send(frame.opcode == .ping ? Frame(.pong, frame.payload) : frame)
        if frame.opcode == .close { return }
      }
    }

    private func readHead() throws {
      let end = Array("\r\n\r\n".utf8)
      while true {
        if let range = bytes.firstRange(of: end) {
          let lines = String(decoding: bytes[..<range.lowerBound], as: UTF8.self).split(separator: "\r\n").dropFirst()
          for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            fields.append((String(parts[0]), parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""))
          }
          position = range.upperBound
          return
        }
        let piece = try socket.receive(atMost: 1 << 14)
        bytes += piece
        guard !piece.isEmpty, bytes.count <= Self.headBytesMax else { throw Refusal() }
      }
    }
  }
}
