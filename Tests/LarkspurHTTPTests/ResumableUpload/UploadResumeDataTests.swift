import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

@Suite struct UploadResumeDataTests {
  static func data(_ version: ResumableUploadVersion = .interop8) -> UploadResumeData {
    UploadResumeData(
      point: UploadPoint(
        version: version, resource: "https://h/u/1", length: 100, acknowledged: 40, sent: 60,
        limits: UploadLimits(maxSize: 1000, maxAppendSize: 50), expiry: 1234.5),
      url: "https://h/post?q=ü", method: "PUT",
      fields: [Field("X-One", "a b"), Field("Content-Type", "")], path: "/tmp/ä",
      file: FileStatus(size: 100, modificationSeconds: -3, modificationNanoseconds: 999_999_999, inode: .max),
      attributes: [0, 1, 255])
  }

  @Test(arguments: ResumableUploadVersion.allCases) func roundTrip(version: ResumableUploadVersion) throws {
    var data = Self.data(version)
    #expect(try UploadResumeData.decoded(#require(data.encoded())) == data)
    data.point.limits = UploadLimits()
    data.point.expiry = nil
    data.fields = []
    data.attributes = []
    #expect(try UploadResumeData.decoded(#require(data.encoded())) == data)
  }

  /// Data that is cut anywhere, or has a byte more, is refused.
  @Test func everyCut() throws {
    let bytes = try #require(Self.data().encoded())
    for count in 0..<bytes.count {
      let refusal = #expect(throws: UploadResumeData.Refusal.self) {
        _ = try UploadResumeData.decoded(Array(bytes.prefix(count)))
      }
      #expect(refusal == (count < 15 ? .foreign : .damaged))
    }
    #expect(throws: UploadResumeData.Refusal.damaged) { _ = try UploadResumeData.decoded(bytes + [0]) }
  }

  /// A bit that is turned over makes other data, or none; nothing crashes, and what is accepted is consistent.
  @Test func everyBit() throws {
    let original = Self.data()
    let bytes = try #require(original.encoded())
    for bit in 0..<bytes.count * 8 {
      var changed = bytes
      changed[bit / 8] ^= 1 << UInt8(bit % 8)
      guard let decoded = try? UploadResumeData.decoded(changed) else { continue }
      #expect(decoded != original && decoded.point.length == decoded.file.size)
      #expect(0...decoded.point.length ~= decoded.point.sent && decoded.encoded() != nil)
    }
  }

  @Test func otherVersionsOfTheFormat() throws {
    var bytes = try #require(Self.data().encoded())
    bytes[14] = 2
    #expect(throws: UploadResumeData.Refusal.version(2)) { _ = try UploadResumeData.decoded(bytes) }
    #expect(throws: UploadResumeData.Refusal.foreign) {
      _ = try UploadResumeData.decoded(Array("LarkspurResume1".utf8))
    }
    #expect(throws: UploadResumeData.Refusal.tooLong) {
      _ = try UploadResumeData.decoded([UInt8](repeating: 0, count: UploadResumeData.bytesMax + 1))
    }
  }

  @Test func contradictionsAreNotEncoded() {
    let edits: [(inout UploadResumeData) -> Void] = [
      { $0.point.sent = 101 }, { $0.point.acknowledged = -1 }, { $0.point.length = 99 }, { $0.point.expiry = .nan },
      { $0.point.resource = "ftp://h/" }, { $0.point.resource = "/u/1" }, { $0.url = "http://" },
      { $0.url = "http://h/\r\n" },
      { $0.method = "PU T" }, { $0.method = "" }, { $0.path = "tmp" }, { $0.path = "/a\0b" },
      { $0.file.modificationNanoseconds = 1_000_000_000 }, { $0.fields[0].name = "X:" },
      { $0.fields[0].value = "a\nb" },
      { $0.attributes = [UInt8](repeating: 0, count: UploadResumeData.bytesMax) },
    ]
    for (index, edit) in edits.enumerated() {
      var data = Self.data()
      edit(&data)
      #expect(data.encoded() == nil, "edit \(index)")
    }
  }

  @Test func randomBytes() {
    var random = SeededGenerator(for: "UploadResumeDataTests.randomBytes")
    let head = Array("LarkspurUpload".utf8) + [1]
    for _ in 0..<5000 {
      let tail = (0..<Int.random(in: 0...200, using: &random)).map { _ in
        Bool.random(using: &random) ? 0 : UInt8.random(in: 0...255, using: &random)
      }
      #expect(throws: UploadResumeData.Refusal.self) { _ = try UploadResumeData.decoded(head + tail) }
    }
  }
}
