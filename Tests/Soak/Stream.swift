import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestSupport
import LarkspurTransport

/// Very large bodies in both directions: the memory that a transfer takes does not depend on the size of its body.
struct Stream: Sendable {
  /// Maximum peak of the resident memory while streaming, above that of the idle process, in KiB.
  static let growthKiBMax = 8 * 1024

  let peer: Peer
  let loop: ClientLoop
  let security: Security

  init() throws {
    peer = try Peer()
    loop = try ClientLoop()
    security = try secure(peer)
  }

  /// Prints the peak memory of each way of transfer.
  ///
  /// - Returns: Whether all of them stayed below `growthKiBMax`.
  func check(bytes: Int) async throws -> Bool {
    // The warm-up makes what is made once and kept.
    for way in Way.allCases { _ = try await run(way, bytes: 16 << 20) }
    let idle = Self.peakKiB(ofNow: true)
    var isGood = true
    for way in Way.allCases {
      let peak = try await run(way, bytes: bytes)
      print("\(way.rawValue): \(bytes) bytes, \(peak - idle) KiB more than the \(idle) KiB of before")
      isGood = isGood && peak - idle <= Self.growthKiBMax
    }
    return try peer.end() && isGood
  }

  private enum Way: String, CaseIterable {
    case download
    case secureDownload = "download over TLS"
    case upload = "upload from a producer"
    case fileUpload = "upload from a file"
  }

  private func run(_ way: Way, bytes: Int) async throws -> Int {
    _ = Self.peakKiB(ofNow: true)
    let moved = try await loop.run { () async throws in
      switch way {
      case .download: try await download(bytes, security: nil)
      case .secureDownload: try await download(bytes, security: security)
      case .upload: try await upload(bytes, Self.producer(of: bytes))
      case .fileUpload: try await uploadFile(bytes)
      }
    }
    guard moved == bytes else { throw Unexpected(bytes: moved) }
    return Self.peakKiB(ofNow: false)
  }

  struct Unexpected: Error {
    var bytes: Int
  }

  private func download(_ count: Int, security: Security?) async throws -> Int {
    let connection = try await Connection.open(
      host: "127.0.0.1", port: security == nil ? peer.port : peer.securePort, security: security, on: loop)
    defer { connection.close() }
    let exchange = try await connection.send(request("GET", "/bytes/\(count)"))
    var received = 0
    while try await exchange.receiveData({ received += $0.count }) {}
    return received
  }

  private static func producer(of count: Int) -> RequestBody {
    .produced(length: count) { writer in
      let piece = [UInt8](repeating: 120, count: 64 * 1024)
      var left = count
      while left > 0 {
        try await writer.write(left < piece.count ? Array(piece[..<left]) : piece)
        left -= min(left, piece.count)
      }
    }
  }

  private func uploadFile(_ count: Int) async throws -> Int {
    let path = NSTemporaryDirectory() + "/larkspur-stream-\(getpid())"
    // A sparse file takes no room on the disk.
    let made = try OpenFile(creating: path)
    defer { unlink(path) }
    truncate(path, count)
    _ = made
    return try await upload(count, .file(try OpenFile(reading: path), offset: 0, length: count))
  }

  private func upload(_ count: Int, _ body: RequestBody) async throws -> Int {
    let connection = try await Connection.open(host: "127.0.0.1", port: peer.sinkPort, on: loop)
    defer { connection.close() }
    let exchange = try await connection.send(request("POST", body: count), body: body)
    let answer = try await exchange.collectBody(bytesMax: 100)
    return Int(String(decoding: answer, as: UTF8.self)) ?? -1
  }

  /// Returns the peak of the resident memory in KiB since the last call with `ofNow`, which resets the peak and returns
  /// the present value.
  private static func peakKiB(ofNow: Bool) -> Int {
    // proc(5): writing 5 resets the peak.
    if ofNow { try? FileHandle(forWritingAtPath: "/proc/self/clear_refs")?.write(contentsOf: Data("5".utf8)) }
    let file = ofNow ? nil : FileManager.default.contents(atPath: "/proc/self/status")
    guard let file else { return residentKiB }
    return kib("VmHWM:", in: file)
  }

  private static var residentKiB: Int {
    kib("Rss:", in: FileManager.default.contents(atPath: "/proc/self/smaps_rollup") ?? Data())
  }

  private static func kib(_ name: String, in text: Data) -> Int {
    let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name) }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }
}

/// A server that reads request bodies, keeps none of their bytes, and answers with their length.
final class Sink: Sendable {
  let listener: BlockingListener

  init() throws {
    listener = try BlockingListener(address: .loopback(port: 0))
    Thread.detachNewThread { [listener] in
      while let socket = try? listener.accept() {
        Thread.detachNewThread { Self.serve(socket) }
      }
    }
  }

  private static func serve(_ socket: BlockingSocket) {
    var head = Data()
    let end = Data("\r\n\r\n".utf8)
    while head.range(of: end) == nil {
      guard let bytes = try? socket.receive(atMost: 4096), !bytes.isEmpty else { return }
      head += bytes
    }
    guard let range = head.range(of: end) else { return }
    let fields = String(decoding: head[..<range.lowerBound], as: UTF8.self).lowercased().split(separator: "\r\n")
    let length = fields.first { $0.hasPrefix("content-length:") }.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    var received = head.count - head.distance(from: head.startIndex, to: range.upperBound)
    while received < length {
      guard let bytes = try? socket.receive(atMost: 256 * 1024), !bytes.isEmpty else { return }
      received += bytes.count
    }
    let body = "\(received)"
    try? socket.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
    _ = socket.waitForPeerEnd()
  }
}
