import Foundation
import FuzzOracles
import Testing

/// Runs every seed of the fuzzers, and every input that a fuzzer has found, through the fuzzers' own checks.
@Suite struct CorpusReplayTests {
  private static let targets: [(name: String, finding: @Sendable ([UInt8]) -> String?)] = [
    ("ResponseParser", ResponseParserOracle.finding),
    ("ChunkedBody", ChunkedBodyOracle.finding),
    ("ConnectionSession", ConnectionSessionOracle.finding),
    ("TLSEngine", TLSEngineOracle.finding),
    ("ContentCoding", ContentCodingOracle.finding),
    ("SOCKSReplies", SOCKSOracle.finding),
    ("WebSocket", WebSocketOracle.finding),
    ("EventStream", EventStreamOracle.finding),
    ("ImageHead", ImageHeadOracle.finding),
    ("ArchiveName", ArchiveNameOracle.finding),
    ("TransferRecord", TransferRecordOracle.finding),
    ("DownloadRecord", DownloadRecordOracle.finding),
  ]

  @Test(arguments: targets.map(\.name)) func replay(target: String) throws {
    let finding = try #require(Self.targets.first { $0.name == target }?.finding)
    let folder = Self.corpus.appendingPathComponent(target)
    let seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!seeds.isEmpty)
    for seed in seeds {
      let input = Array(try Data(contentsOf: seed))
      #expect(finding(input) == nil, "\(seed.lastPathComponent)")
    }
  }

  @Test func everyTargetHasACorpus() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
    #expect(Set(folders) == Set(Self.targets.map(\.name)))
  }

  private static let corpus = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Fuzz/Corpus")
}
