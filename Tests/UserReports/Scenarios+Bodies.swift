import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let bodies = [
    Scenario(name: "redirect-307-body", title: "307 and 308 send method and body again") { site in
      for status in [307, 308] {
        var request = try site.request("/redirect-to?status=\(status)&url=%2Fanything", method: "POST")
        request.httpBody = Data("the body".utf8)
        let loaded = await URLSession(configuration: .ephemeral).load(request)
        try expect(loaded.status == 200, "\(loaded)")
        let echo = try echo(loaded)
        try expect(echo["method"] as? String == "POST" && echo["data"] as? String == "the body", "\(echo)")
      }
    },
    Scenario(name: "redirect-302-post", title: "302 turns POST into GET, without a body") { site in
      var request = try site.request("/redirect-to?status=302&url=%2Fanything", method: "POST")
      request.httpBody = Data("the body".utf8)
      let loaded = await URLSession(configuration: .ephemeral).load(request)
      let echo = try echo(loaded)
      try expect(echo["method"] as? String == "GET" && echo["bodyCount"] as? Int == 0, "\(echo)")
    },
    Scenario(name: "slow-stream", title: "a stream that is open and has nothing yet (reads 0) is waited for") { site in
      var request = try site.request("/post", method: "POST")
      request.httpBodyStream = SlowStream(pieces: 50)
      let loaded = await URLSession(configuration: .ephemeral).load(request)
      try expect(loaded.status == 200, "\(loaded)")
      let echo = try echo(loaded)
      try expect(echo["bodyCount"] as? Int == 50 * SlowStream.pieceBytes, "the server got \(echo["bodyCount"] ?? 0)")
    },
    Scenario(name: "upload-of-a-large-file", title: "a file of 64 MiB is sent in little memory") { site in
      let file = FileManager.default.temporaryDirectory.appendingPathComponent("large")
      defer { try? FileManager.default.removeItem(at: file) }
      try Data(count: 64 << 20).write(to: file)
      let before = Footprint.peakBytes
      let session = URLSession(configuration: .ephemeral)
      let request = try site.request("/count", method: "PUT")
      let status: Int? = await withCheckedContinuation { continuation in
        session.uploadTask(with: request, fromFile: file) { _, response, _ in
          continuation.resume(returning: (response as? HTTPURLResponse)?.statusCode)
        }.resume()
      }
      try expect(status == 200, "\(String(describing: status))")
      let grown = (Footprint.peakBytes - before) >> 20
      try expect(grown < 32, "it took \(grown) MiB")
    },
  ]
}

/// A stream that returns a piece at every second read and 0 bytes in between, which does not mean the end of the
/// stream.
final class SlowStream: InputStream {
  static let pieceBytes = 1_000
  private let pieces: Int
  private var readCount = 0
  private var status = Stream.Status.notOpen

  init(pieces: Int) {
    self.pieces = pieces
    super.init(data: Data())
  }

  override func open() { status = .open }
  override func close() { status = .closed }
  override var streamStatus: Stream.Status { status }
  override var hasBytesAvailable: Bool { status == .open && readCount % 2 == 0 }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    readCount += 1
    if readCount % 2 == 1 { return 0 }
    guard readCount / 2 <= pieces else {
      status = .atEnd
      return 0
    }
    let count = min(len, Self.pieceBytes)
    for index in 0..<count { buffer[index] = UInt8(ascii: "x") }
    if readCount / 2 == pieces { status = .atEnd }
    return count
  }

  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}
