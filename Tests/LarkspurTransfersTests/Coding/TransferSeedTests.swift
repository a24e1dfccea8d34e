import Foundation
import LarkspurBytes
import Testing

@testable import LarkspurTransfers

/// The seeds of the fuzz target `TransferRecord`: what the fixtures are as bytes, in the form of `TransferRecordOracle`.
@Suite struct TransferSeedTests {
  private static let directory = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fuzz/Corpus/TransferRecord")

  private static func seeds() throws -> [String: [UInt8]] {
    var seeds: [String: [UInt8]] = [:]
    for (name, record) in zip(["plain", "download", "upload"], Fixture.all) {
      seeds["record-\(name)"] = [0] + (try record.bytes())
      seeds["file-record-\(name)"] = [3] + (try record.encoded())
    }
    let session = try TransferSessionFile.encoded(Fixture.transferSession())
    seeds["session"] = [1] + session.dropFirst(RecordEnvelope.headCount)
    seeds["file-session"] = [3] + session
    // Three sizes of pieces follow the kind.
    let stream: [UInt8] = [2, 1, 2, 3]
    let messages = try Fixture.messages.map { try $0.encoded() }
    for (number, message) in messages.enumerated() { seeds["message-\(number)"] = stream + message }
    seeds["messages"] = [2, 5, 0, 64] + messages.suffix(6).joined()
    seeds["message-incomplete"] = stream + messages[0].dropLast()
    seeds["message-too-large"] = stream + [1, 0, 32, 0]
    return seeds
  }

  /// Each fixture has a seed. `LARKSPUR_WRITE_SEEDS` writes all of them anew.
  @Test func seedsAreThoseOfTheFixtures() throws {
    let seeds = try Self.seeds()
    if ProcessInfo.processInfo.environment["LARKSPUR_WRITE_SEEDS"] != nil {
      for (name, bytes) in seeds { try Data(bytes).write(to: Self.directory.appending(path: name)) }
    }
    for (name, bytes) in seeds {
      #expect((try? Data(contentsOf: Self.directory.appending(path: name))) == Data(bytes), "\(name)")
    }
  }
}
