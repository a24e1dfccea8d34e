import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// The download of a large body in little memory, checked byte by byte.
  static let download = DemoPart("A download of 64 MiB") { stage in
    let count = 64 << 20
    let connection = try await stage.connect()
    defer { connection.close() }
    var checksum = TestServer.Checksum()
    var received = 0
    let start = stage.now
    stage.say("GET /bytes/\(count)")
    try await connection.cancelledWithTask {
      let exchange = try await stage.send(try stage.request("/bytes/\(count)"), over: connection)
      var progress = DemoProgress(total: count, stage)
      while try await exchange.receiveData({ piece in
        checksum.update(piece)
        received += piece.count
        progress.advance(by: piece.count)
      }) {}
      progress.finish()
    }
    let rate = Format.bytes(Double(received) / max(Format.seconds(stage.now.duration(since: start)), 1e-9)) + "/s"
    let expected = TestServer.contentChecksum(count: count)
    stage.say("CRC-32 of what came: \(checksum), of what the server sent: \(expected)")
    try DemoFailure.unless(received == count, "\(received) bytes came")
    try DemoFailure.unless(checksum == expected, "the checksums differ")
    return "\(rate), checksum \(checksum) is right"
  }
}

/// The progress: a bar on a terminal, otherwise a line for each quarter.
private struct DemoProgress {
  private let stage: DemoStage
  private let total: Int
  private var received = 0
  private var bar: ProgressBar?

  init(total: Int, _ stage: DemoStage) {
    self.stage = stage
    self.total = total
    if OpenFile.standardOutput.isTerminal {
      bar = ProgressBar(total: total, on: .standardOutput, now: stage.now)
    }
  }

  mutating func advance(by count: Int) {
    let quarters = received * 4 / total
    received += count
    guard bar == nil else {
      bar?.advance(to: received, now: stage.now)
      return
    }
    if received * 4 / total > quarters { stage.say("\(received * 4 / total * 25)%  \(Format.bytes(received))") }
  }

  mutating func finish() { bar?.finish(now: stage.now) }
}
