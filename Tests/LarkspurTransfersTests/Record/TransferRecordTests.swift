import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

@testable import LarkspurTransfers

@Suite struct TransferRecordTests {
  /// Returns the error of reading the bytes, or `nil` if they are a record.
  private static func error(_ file: [UInt8]) -> TransferValueError? {
    do throws(TransferValueError) {
      _ = try TransferRecord(file: file)
      return nil
    } catch {
      return error
    }
  }

  private static func isDamage(_ error: TransferValueError?) -> Bool {
    if case .damaged = error { true } else { false }
  }

  @Test func whatIsWrittenIsRead() throws {
    for record in Fixture.all {
      let bytes = try record.encoded()
      #expect(try TransferRecord(file: bytes) == record)
      // Equal records have equal bytes.
      #expect(try TransferRecord(file: bytes).encoded() == bytes)
    }
  }

  /// Each state, kind and event has a number of its own.
  @Test func everyCase() throws {
    for state in [TransferRecord.State.running, .suspended, .canceling, .completed] {
      var record = Fixture.plain()
      record.state = state
      #expect(try TransferRecord(file: record.encoded()).state == state)
    }
  }

  @Test func everyPrefixIsDamaged() throws {
    for record in Fixture.all {
      let bytes = try record.encoded()
      for count in 0..<bytes.count { #expect(Self.isDamage(Self.error(Array(bytes.prefix(count)))), "\(count) bytes") }
      #expect(Self.isDamage(Self.error(bytes + [0])))
    }
  }

  @Test func everyChangedByteIsDamage() throws {
    for record in Fixture.all {
      let bytes = try record.encoded()
      for index in bytes.indices {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] as [UInt8] {
          var changed = bytes
          changed[index] ^= change
          #expect(Self.isDamage(Self.error(changed)), "byte \(index), bits \(change)")
        }
      }
    }
  }

  @Test(arguments: [(1, "an earlier"), (TransferRecord.formatVersion + 1, "a later"), (.max, "a later")])
  func otherVersions(version: UInt32, age: String) {
    let file = RecordEnvelope(name: "LKTR", version: version).wrapped(Array("what this version does not know".utf8))
    let error = TransferValueError.otherVersion(version, known: TransferRecord.formatVersion)
    #expect(Self.error(file) == error)
    let words = "\(error)"
    #expect(words.contains("version \(version)") && words.contains(age))
    #expect(words.contains("reads version \(TransferRecord.formatVersion)"))
    // A damaged file is not taken for one of another version.
    for index in file.indices {
      var changed = file
      changed[index] ^= 0x10
      #expect(Self.isDamage(Self.error(changed)), "byte \(index)")
    }
  }

  /// Content with a right checksum is untrusted, too: reading it gives a record that can be written, or an error.
  @Test func contentThatNoWriterWrites() throws {
    var generator = SeededGenerator(for: "transfer records")
    var (accepted, refused) = (0, 0)
    for record in Fixture.all {
      let content = Array(try record.encoded()[RecordEnvelope.headCount...])
      for _ in 0..<4_000 {
        var changed = content
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
          let index = Int.random(in: changed.indices, using: &generator)
          switch Int.random(in: 0..<4, using: &generator) {
          case 0: changed[index] = .random(in: 0...255, using: &generator)
          case 1: changed[index] = [0, 1, 0x7f, 0xff].randomElement(using: &generator) ?? 0
          case 2: changed.insert(.random(in: 0...255, using: &generator), at: index)
          default: if changed.count > 1 { changed.remove(at: index) }
          }
        }
        let file = TransferRecord.envelope.wrapped(changed)
        do throws(TransferValueError) {
          let read = try TransferRecord(file: file)
          #expect(try read.encoded() == file)
          accepted += 1
        } catch {
          #expect(Self.isDamage(error))
          refused += 1
        }
      }
    }
    #expect(accepted > 100 && refused > 100)
  }

  /// A size that the content only claims allocates nothing, and ends the reading.
  @Test func sizesThatAreNotThere() throws {
    let content = Array(try Fixture.plain().bytes())
    // The session's identifier, which follows the task's, and the fields, which follow the URL and the method.
    let url = try #require(content.firstRange(of: Array("GET".utf8)))
    for position in [8, url.upperBound] {
      var changed = content
      changed.replaceSubrange(position..<position + 4, with: [0xff, 0xff, 0xff, 0xff])
      #expect(Self.isDamage(Self.error(TransferRecord.envelope.wrapped(changed))))
    }
  }

  private typealias Change = @Sendable (inout TransferRecord) -> Void

  private static let invalid: [(String, Change)] = [
    ("task", { $0.task = 0 }), ("task", { $0.task = -1 }), ("task", { $0.task = TransferRecord.taskMax + 1 }),
    ("session", { $0.session = "" }), ("session", { $0.session = "a\nb" }),
    ("session", { $0.session = String(repeating: "x", count: TransferRecord.sessionBytesMax + 1) }),
    ("URL", { $0.originalRequest.url = "" }), ("URL", { $0.originalRequest.url = "http://a/\r\nb" }),
    ("method", { $0.originalRequest.method = "" }), ("method", { $0.originalRequest.method = "GET /" }),
    ("fields", { $0.originalRequest.fields = [Field("", "")] }),
    ("fields", { $0.originalRequest.fields = [Field("a:", "")] }),
    ("fields", { $0.originalRequest.fields = [Field("a", "b\r\nc: d")] }),
    ("main document", { $0.originalRequest.mainDocument = "" }),
    ("timeout", { $0.originalRequest.timeoutSeconds = .nan }),
    ("current request", { $0.currentRequest = TransferRequest(url: "") }),
    ("redirects", { $0.redirects = [""] }),
    ("redirects", { $0.redirects = Array(repeating: "a", count: TransferRecord.redirectsMax + 1) }),
    ("kind", { $0.kind = .upload }),
    ("kind", { $0.uploadFile = Fixture.uploadFile }),
    ("resume point", { $0.resumePoint = ResumePoint(validator: "\"v\"", offset: -1, total: nil, coding: nil) }),
    ("resume point", { $0.resumePoint = ResumePoint(validator: "\"v\"", offset: 9, total: 8, coding: nil) }),
    ("resume point", { $0.resumePoint = ResumePoint(validator: "", offset: 0, total: nil, coding: nil) }),
    ("point of the upload", { $0.uploadPoint = [] }), ("without a file", { $0.hasContentFile = false }),
    ("counts", { $0.counts.received = -2 }),
    ("response", { $0.response?.status = 1000 }), ("response", { $0.response?.version = "HTTP/1.1\n" }),
    ("underlying error", { $0.failure = nil }), ("times", { $0.createdSeconds = .nan }),
    ("times", { $0.earliestBeginSeconds = .infinity }), ("times", { $0.nextAttemptSeconds = -.infinity }),
    ("times", { $0.suspendedSeconds = .nan }), ("times", { $0.pausedSeconds = -1 }),
    ("times", { $0.clock?.startSeconds = .nan }),
    ("priority", { $0.priority = 1.5 }), ("state", { $0.state = .running }),
    ("events", { $0.events = [.resumed(offset: -1, expected: 0)] }),
    ("events", { $0.events = Array(repeating: .downloaded, count: TransferRecord.eventsMax + 1) }),
    (
      "downloaded file",
      { record in
        record.resumePoint = nil
        record.hasContentFile = false
      }
    ),
  ]

  /// A value that breaks a rule is not written, with an error that names the part.
  @Test func whatCannotBeWritten() {
    for (part, change) in Self.invalid {
      var record = Fixture.fullDownload()
      change(&record)
      do throws(TransferValueError) {
        _ = try record.encoded()
        Issue.record("\(part) was written")
      } catch {
        #expect("\(error)".contains(part), "\(part): \(error)")
        if case .invalid = error {} else { Issue.record("\(part): \(error)") }
      }
    }
  }

  @Test func whatIsJustPossible() throws {
    var record = Fixture.fullDownload()
    record.task = TransferRecord.taskMax
    record.session = String(repeating: "x", count: TransferRecord.sessionBytesMax)
    record.redirects = Array(repeating: "a", count: TransferRecord.redirectsMax)
    record.events = Array(repeating: .downloaded, count: TransferRecord.eventsMax)
    record.response?.status = 999
    record.counts.received = -1
    record.priority = 0
    record.resumePoint = ResumePoint(validator: "\"v\"", offset: 8, total: 8, coding: nil)
    #expect(try TransferRecord(file: record.encoded()) == record)
  }

  @Test func uploadsNeedAnAbsolutePath() {
    for path in ["", "file", "/a\0b"] {
      var record = Fixture.upload()
      record.uploadFile?.path = path
      #expect(throws: TransferValueError.invalid("the file to upload")) { try record.encoded() }
    }
  }

  @Test func impossibleFilesToUpload() {
    var record = Fixture.upload()
    record.uploadFile?.identity.size = -1
    #expect(throws: TransferValueError.invalid("the file to upload")) { try record.encoded() }
    record = Fixture.upload()
    record.uploadFile?.identity.modificationNanoseconds = 1_000_000_000
    #expect(throws: TransferValueError.invalid("the file to upload")) { try record.encoded() }
  }

  @Test func theLargestRecord() throws {
    var record = Fixture.plain()
    let count = try record.encoded().count
    // The body has its size, of four bytes, before it.
    record.originalRequest.body = [UInt8](repeating: 7, count: TransferRecord.bytesMax - count - 4)
    let bytes = try record.encoded()
    #expect(bytes.count == TransferRecord.bytesMax)
    #expect(try TransferRecord(file: bytes) == record)
    record.originalRequest.body?.append(7)
    #expect(throws: TransferValueError.tooLarge(TransferRecord.bytesMax + 1, max: TransferRecord.bytesMax)) {
      try record.encoded()
    }
    #expect(Self.error(bytes + [0]) == .tooLarge(TransferRecord.bytesMax + 1, max: TransferRecord.bytesMax))
  }

  // MARK: - Size

  @Test func partsAreLeftOutUntilTheRecordFits() throws {
    var record = Fixture.fullDownload()
    record.currentRequest?.body = [UInt8](repeating: 0, count: TransferRecord.bytesMax)
    #expect(!record.fits(TransferRecord.bytesMax))
    record.leaveOutParts()
    #expect(record.fits(TransferRecord.bytesMax))
    #expect(record.currentRequest?.body == nil && record.response?.fields.isEmpty == false && !record.redirects.isEmpty)
    record.response?.fields = [Field("A", String(repeating: "x", count: TransferRecord.bytesMax))]
    record.leaveOutParts()
    #expect(record.response?.fields == [] && !record.redirects.isEmpty && record.fits(TransferRecord.bytesMax))
    // What the task is stays.
    record.leaveOutParts(until: 0)
    var plain = Fixture.fullDownload()
    (plain.currentRequest, plain.response, plain.redirects) = (nil, nil, [])
    (plain.cookies, plain.uploadPoint, plain.resumePoint) = (nil, nil, nil)
    #expect(record == plain)
    record.originalRequest.body = [UInt8](repeating: 0, count: TransferRecord.bytesMax)
    let isEnough = record.leaveOutParts()
    #expect(!isEnough)
  }

  @Test func textsAreCutBetweenCharacters() {
    #expect(TransferRecord.cut("abc", toBytes: 3) == "abc" && TransferRecord.cut("abc", toBytes: 2) == "ab")
    #expect(TransferRecord.cut("aäb", toBytes: 2) == "a" && TransferRecord.cut("aäb", toBytes: 3) == "aä")
    #expect(TransferRecord.cut("\u{1F600}", toBytes: 3) == "" && TransferRecord.cut("", toBytes: 0) == "")
  }
}
