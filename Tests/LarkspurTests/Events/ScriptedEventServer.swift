import Foundation
import Larkspur
import LarkspurTestSupport
import TestKit

/// The server of an `EventSourceScenario`: the requests that have come, and the responses that are being sent.
final class ScriptedEventServer {
  struct Request {
    var peer: ScriptedPeer
    /// The number of the reader.
    var reader: Int
    /// The value of `Last-Event-ID`.
    var lastEventID: String?
  }

  /// What a response makes of the source.
  enum Verdict: Equatable {
    /// The source ends without an error.
    case ended
    /// The source ends with `badServerResponse`.
    case refused
    /// The source ends with `dataLengthExceedsMaximum`.
    case tooLarge
  }

  /// The response with a stream.
  final class Stream {
    fileprivate enum Framing { case close, chunked, length }

    let peer: ScriptedPeer
    /// The number of the reader that gets the stream.
    let reader: Int
    fileprivate let framing: Framing
    fileprivate var drawn: DrawnEventStream
    fileprivate var wire: [UInt8] = []
    fileprivate var framedBytes = 0
    /// The effects of the stream, each with the number of the connection's bytes that lead to it.
    fileprivate(set) var effects: [(end: Int, effect: DrawnEventStream.Effect)] = []
    /// The number of bytes that have been sent.
    fileprivate(set) var sentBytes = 0
    fileprivate(set) var hasEnded = false
    /// The number of effects that the client has seen, up to the latest event that it has delivered.
    var seen = 0
    /// Whether the client has read the stream to its end.
    var isRead = false

    fileprivate init(
      to peer: ScriptedPeer, _ reader: Int, _ framing: Framing, _ drawn: DrawnEventStream
    ) {
      (self.peer, self.reader, self.framing, self.drawn) = (peer, reader, framing, drawn)
    }

    var isOpen: Bool { !hasEnded && peer.isOpen }
    /// The number of the connection's bytes up to the latest event that the client has delivered.
    var seenBytes: Int { seen == 0 ? 0 : effects[seen - 1].end }
    /// The number of bytes that the client has received.
    var receivedBytes: Int { sentBytes - peer.unfetched }
  }

  private let kernel: ScriptedKernel
  private let isLimited: Bool
  /// The number of bytes of each peer that have been read.
  private var readBytes: [Int] = []
  /// The request that has no response yet.
  private(set) var pending: Request?
  private(set) var stream: Stream?

  /// The numbers of events, each with whether its event is left out: only its ID is sent.
  private(set) var log: [Int: Bool] = [:]
  /// Whether the client was made to forget its ID.
  private(set) var hasForgotten = false
  /// The number of the next event.
  private var next = 1

  // What the latest response demands.
  private(set) var verdict: (Verdict, reader: Int)?
  /// The value of `Retry-After` in seconds, and the number of the reader that it was sent to.
  private var retryAfter: (seconds: Int, reader: Int)?

  init(_ kernel: ScriptedKernel, isLimited: Bool) {
    self.kernel = kernel
    self.isLimited = isLimited
  }

  /// Whether the client waits for this server.
  var isAwaited: Bool { pending?.peer.isOpen ?? (stream?.isOpen ?? false) }

  // MARK: - Requests

  /// Returns the requests that have come since the last call.
  func takeRequests(of reader: Int) -> [Request] {
    var found: [Request] = []
    for index in 0..<kernel.socketCount {
      if index == readBytes.count { readBytes.append(0) }
      let peer = kernel.peer(index)
      let bytes = peer.received[readBytes[index]...]
      // Requests have no content, and none is sent before the response to the one before it.
      guard bytes.count >= 4, Array(bytes.suffix(4)) == [0x0d, 0x0a, 0x0d, 0x0a] else { continue }
      readBytes[index] += bytes.count
      let name = "last-event-id: "
      let field = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first {
        $0.lowercased().hasPrefix(name)
      }
      found.append(Request(peer: peer, reader: reader, lastEventID: field.map { String($0.dropFirst(name.count)) }))
    }
    if let last = found.last {
      pending = last
      (stream, verdict, retryAfter) = (nil, nil, nil)
    }
    return found
  }

  /// Returns the delay that the latest response has demanded of a reader, once.
  func takeRetryAfter(of reader: Int) -> Duration {
    defer { retryAfter = nil }
    guard let retryAfter, retryAfter.reader == reader else { return .zero }
    return .seconds(retryAfter.seconds)
  }

  // MARK: - Responses

  /// Answers the request that waits.
  ///
  /// - Parameter isLast: Whether the source has to end.
  func respond(isLast: Bool, using random: inout SeededGenerator) {
    guard let request = pending, request.peer.isOpen else { return }
    if !isLast, random.chance(5) { send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", to: request.peer, &random) }
    pending = nil
    let connection = random.chance(50) ? "Connection: close\r\n" : ""
    switch isLast ? 90 : Int.random(in: 0..<100, using: &random) {
    case 0..<70: startStream(request, using: &random)
    case 70..<80:
      let seconds = random.chance(50) ? random.pick([0, 1, 7, 200]) : nil
      let field = seconds.map { "Retry-After: \($0)\r\n" } ?? ""
      retryAfter = seconds.map { ($0, request.reader) }
      send(
        "HTTP/1.1 \(random.pick([429, 500, 502, 503, 504])) X\r\n\(field)\(connection)Content-Length: 2\r\n\r\nno",
        to: request.peer, &random)
      if !connection.isEmpty { request.peer.close() }
    case 80..<86:
      pending = nil
      send(
        "HTTP/1.1 \(random.pick([302, 307])) X\r\nLocation: /moved\r\n\(connection)Content-Length: 0\r\n\r\n",
        to: request.peer, &random)
      if !connection.isEmpty { request.peer.close() }
    case 86..<88:
      send("SSH-2.0-server\r\n\r\n", to: request.peer, &random)
      request.peer.close()
    case 88: request.peer.arrive([random.chance(50) ? .end : .reset])
    // No answer yet.
    case 89: pending = request
    case 90..<94:
      verdict = (.ended, request.reader)
      send("HTTP/1.1 204 No Content\r\n\(connection)\r\n", to: request.peer, &random)
      if !connection.isEmpty { request.peer.close() }
    case 94..<97:
      verdict = (.refused, request.reader)
      send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: x\n\n", to: request.peer, &random)
      request.peer.close()
    default:
      verdict = (.refused, request.reader)
      send(
        "HTTP/1.1 \(random.pick([201, 400, 404, 410])) X\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n",
        to: request.peer, &random)
    }
  }

  private func startStream(_ request: Request, using random: inout SeededGenerator) {
    let id = request.lastEventID ?? ""
    let framing: Stream.Framing = random.pick([.close, .chunked, .length])
    let stream = Stream(
      to: request.peer, request.reader, framing, DrawnEventStream(lastEventID: id, isLimited: isLimited, using: &random)
    )
    self.stream = stream
    // Without the field, a client gets the events that come from now on.
    next = Int(id).map { $0 + 1 } ?? max(next, (log.keys.max() ?? 0) + 1)
    let type = random.pick(["text/event-stream", "text/event-stream;charset=utf-8", "Text/Event-Stream"])
    var head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n"
    if framing == .length {
      for _ in 0..<Int.random(in: 0...12, using: &random) { draw(stream, using: &random) }
      head += "Content-Length: \(stream.drawn.bytes.count)\r\n"
    } else {
      head += framing == .chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n"
    }
    stream.wire = Array((head + "\r\n").utf8)
    frame(stream, using: &random)
    if random.chance(70) { proceed(using: &random) }
  }

  /// Sends more of the stream.
  func proceed(using random: inout SeededGenerator) {
    guard let stream, stream.isOpen else { return }
    if stream.framing != .length, random.chance(80) {
      for _ in 0..<Int.random(in: 1...6, using: &random) { draw(stream, using: &random) }
      frame(stream, using: &random)
    }
    let left = stream.wire.count - stream.sentBytes
    send(stream, random.chance(60) ? left : Int.random(in: 0...left, using: &random), &random)
    if stream.framing == .length, stream.sentBytes == stream.wire.count { stream.hasEnded = true }
  }

  /// Sends many comments, faster than a slow client reads.
  func flood(_ count: Int, using random: inout SeededGenerator) {
    guard let stream, stream.isOpen, stream.framing != .length, !stream.drawn.isTooLarge else { return }
    stream.drawn.appendFlood(count)
    frame(stream, using: &random)
    send(stream, stream.wire.count - stream.sentBytes, &random)
  }

  /// Ends the stream, in order or not.
  func endStream(using random: inout SeededGenerator) {
    guard let stream, stream.isOpen else { return }
    if stream.framing == .chunked, stream.sentBytes == stream.wire.count, random.chance(50) {
      stream.peer.send(Array("0\r\n\r\n".utf8))
      if random.chance(50) { stream.peer.close() }
    } else {
      stream.peer.arrive([random.chance(70) ? .end : .reset])
    }
    stream.hasEnded = true
  }

  // MARK: - The stream

  private func draw(_ stream: Stream, using random: inout SeededGenerator) {
    guard !stream.drawn.isTooLarge else { return }
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<60:
      let isLeftOut = log[next] ?? random.chance(10)
      log[next] = isLeftOut
      if isLeftOut {
        stream.drawn.appendID("\(next)", using: &random)
      } else {
        stream.drawn.appendEvent(next, using: &random)
      }
      next += 1
    case 60..<75: stream.drawn.appendNote(using: &random)
    case 75..<97: stream.drawn.appendSilence(using: &random)
    case 97:
      stream.drawn.appendID("", using: &random)
      hasForgotten = true
    default: if isLimited { stream.drawn.appendTooLarge(using: &random) }
    }
  }

  /// Adds the framing of HTTP to what has been drawn since the last call.
  private func frame(_ stream: Stream, using random: inout SeededGenerator) {
    let bytes = stream.drawn.bytes
    while stream.framedBytes < bytes.count {
      let start = stream.framedBytes
      var end = bytes.count
      if stream.framing == .chunked {
        if random.chance(50) { end = Int.random(in: start + 1...end, using: &random) }
        stream.wire += Array("\(String(end - start, radix: 16))\r\n".utf8)
      }
      let offset = stream.wire.count - start
      for effect in stream.drawn.effects where effect.end > start && effect.end <= end {
        stream.effects.append((effect.end + offset, effect.effect))
      }
      stream.wire += bytes[start..<end]
      if stream.framing == .chunked { stream.wire += [0x0d, 0x0a] }
      stream.framedBytes = end
    }
  }

  private func send(_ stream: Stream, _ count: Int, _ random: inout SeededGenerator) {
    let end = stream.sentBytes + count
    send(stream.wire[stream.sentBytes..<end], to: stream.peer, &random)
    stream.sentBytes = end
    let isTooLarge = stream.effects.contains { $0.end <= end && $0.effect == .tooLarge }
    if isTooLarge { verdict = (.tooLarge, stream.reader) }
  }

  private func send(_ text: String, to peer: ScriptedPeer, _ random: inout SeededGenerator) {
    send(Array(text.utf8)[...], to: peer, &random)
  }

  /// Sends bytes in pieces.
  private func send(_ bytes: ArraySlice<UInt8>, to peer: ScriptedPeer, _ random: inout SeededGenerator) {
    var rest = bytes
    while random.chance(40), !rest.isEmpty {
      let piece = rest.prefix(Int.random(in: 1...min(rest.count, 200), using: &random))
      peer.send(Array(piece))
      rest = rest.dropFirst(piece.count)
    }
    if !rest.isEmpty { peer.send(Array(rest)) }
  }
}
