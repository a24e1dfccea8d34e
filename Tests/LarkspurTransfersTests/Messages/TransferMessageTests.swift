import LarkspurBytes
import TestKit
import Testing

@testable import LarkspurTransfers

@Suite struct TransferMessageTests {
  private static func frame(_ message: TransferMessage) throws -> TransferFrame {
    var parser = TransferFrameParser()
    parser.append(try message.encoded())
    let frame = try parser.next()
    #expect(parser.isBetweenFrames)
    return try #require(frame)
  }

  /// Reads a frame.
  ///
  /// - Returns: The message, or `nil` if the frame is damaged.
  private static func read(_ frame: TransferFrame) -> TransferMessage? {
    do throws(TransferValueError) {
      return try TransferMessage(frame)
    } catch .damaged {
      return nil
    } catch .otherVersion {
      return nil
    } catch {
      Issue.record("\(error)")
      return nil
    }
  }

  @Test func whatIsWrittenIsRead() throws {
    for message in Fixture.messages {
      #expect(try TransferMessage(Self.frame(message)) == message)
    }
  }

  @Test func everyPrefixIsDamaged() throws {
    for message in Fixture.messages {
      let frame = try Self.frame(message)
      for count in 0..<frame.content.count {
        let cut = TransferFrame(content: Array(frame.content.prefix(count)))
        #expect(Self.read(cut) == nil, "\(count) bytes of \(message)")
      }
      #expect(Self.read(TransferFrame(content: frame.content + [0])) == nil)
    }
  }

  /// A changed message is refused, or is another message that can be sent.
  @Test func changedBytes() throws {
    var generator = SeededGenerator(for: "transfer messages")
    var (accepted, refused) = (0, 0)
    for message in Fixture.messages {
      let frame = try Self.frame(message)
      guard !frame.content.isEmpty else { continue }
      for _ in 0..<1_000 {
        var changed = frame
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
          let index = Int.random(in: frame.content.indices, using: &generator)
          changed.content[index] = .random(in: 0...255, using: &generator)
        }
        guard let other = Self.read(changed) else {
          refused += 1
          continue
        }
        accepted += 1
        #expect(try Self.frame(other) == changed)
      }
    }
    #expect(accepted > 100 && refused > 1_000)
  }

  @Test func casesThatDoNotExist() throws {
    var frame = try Self.frame(.opened)
    #expect(frame.content.suffix(6) == ArraySlice("opened".utf8))
    frame.content[frame.content.count - 1] = UInt8(ascii: "x")
    #expect(Self.read(frame) == nil)
  }

  /// Every message can be told from those of any other version.
  @Test func otherVersions() throws {
    for message in Fixture.messages {
      var frame = try Self.frame(message)
      frame.content[TransferMessage.name.count] = 1
      frame.content += [1, 2, 3]
      #expect(throws: TransferValueError.otherVersion(1, known: TransferMessage.version)) { try TransferMessage(frame) }
    }
  }

  private static var impossible: [(String, TransferMessage)] {
    var session = Fixture.transferSession()
    let sessions: [(String, (inout TransferSession) -> Void)] = [
      ("the session identifier", { $0.identifier = "" }), ("the directory", { $0.directory = "relative" }),
      ("the directory", { $0.directory = "/a/../b" }), ("the directory", { $0.directory = "/a\0" }),
      (
        "the size of the settings", { $0.settings = [UInt8](repeating: 0, count: TransferSession.settingsBytesMax + 1) }
      ),
      ("the launch command", { $0.launchCommand = ["", "a"] }), ("the launch command", { $0.launchCommand = ["/a\0"] }),
      ("the launch command", { $0.launchCommand = ["a"] }), ("the launch command", { $0.launchCommand = ["./a"] }),
      ("the launch command", { $0.launchCommand = Array(repeating: "/a", count: 257) }),
      ("the launch command", { $0.launchCommand = ["/" + String(repeating: "a", count: 70_000)] }),
    ]
    var list: [(String, TransferMessage)] = sessions.map { part, change in
      session = Fixture.transferSession()
      change(&session)
      return (part, .open(session))
    }
    list += [
      ("the task identifier", .command(.resume(task: 0))),
      ("the task identifier", .command(.suspend(task: TransferRecord.taskMax + 1))),
      ("the task identifier", .command(.cancel(task: -1, isKeepingContent: true))),
      ("the number of events", .command(.acknowledge(task: 1, count: -1))),
      ("the number of events", .command(.acknowledge(task: 1, count: 65))),
      ("the priority", .command(.update(task: 1, TransferProperties(description: nil, priority: .nan)))),
      (
        "the counts",
        .command(.update(task: 1, TransferProperties(description: nil, priority: 0, clientExpectsToSend: -2)))
      ),
      (
        "the new request's method",
        .command(.answer(question: 1, .useNewRequest(TransferRequest(url: "a", method: ""))))
      ),
      ("the task identifier", .notice(.progress(task: 0, TransferRecord.Counts()))),
      ("the end of a connection", .notice(.lost(reason: "a"))),
      ("the list of tasks", .administer(.change(.pause, directory: "/a", tasks: .some([0])))),
      ("the directory", .administer(.change(.pause, directory: "", tasks: .all))),
      ("the session identifier", .command(.create(Fixture.plain(session: "a\nb")))),
    ]
    var challenge = Fixture.challenge
    challenge.previousFailures = -1
    var trusts = [TransferTrust](repeating: Fixture.trust, count: 4)
    trusts[0].sent = []
    trusts[1].sent = Array(repeating: [1], count: 1_001)
    trusts[2].verified = [[UInt8](repeating: 1, count: TransferQuestion.membersBytesMax + 1)]
    trusts[3].depth = -1
    var request = Fixture.request
    request.issuers = Array(repeating: [1], count: 1_001)
    let questions: [(String, TransferQuestion)] = [
      ("the number of failures", .challenge(challenge)), ("the list of certificates", .trust(trusts[0])),
      ("the list of certificates", .trust(trusts[1])), ("the list of certificates", .trust(trusts[2])),
      ("the depth", .trust(trusts[3])), ("the list of issuers", .clientCertificate(request)),
    ]
    let credentials: [(String, TransferAnswer.Credential)] = [
      ("the list of certificates", .identity(certificates: [], key: [1])),
      ("the key", .identity(certificates: [[1]], key: [])),
      ("the key", .identity(certificates: [[1]], key: [UInt8](repeating: 1, count: (64 << 10) + 1))),
    ]
    list += questions.map { ($0, .notice(.question(1, task: 1, $1))) }
    list += credentials.map {
      ($0, .command(.answer(question: 1, .challenge(disposition: .useCredential, credential: $1))))
    }
    return list
  }

  @Test func whatCannotBeSent() {
    for (part, message) in Self.impossible {
      #expect(throws: TransferValueError.invalid(part)) { try message.encoded() }
    }
  }

  // MARK: - Many records

  private static func records(in frames: [[UInt8]]) throws -> [TransferRecord] {
    var parser = TransferFrameParser()
    var records: [TransferRecord] = []
    for frame in frames {
      parser.append(frame)
      while let frame = try parser.next() {
        guard case .records(let more) = try TransferMessage(frame) else { throw TransferValueError.damaged("") }
        records += more
      }
    }
    return records
  }

  @Test func aThousandRecords() throws {
    let records = (1...1_000).map { Fixture.plain(task: $0) }
    let frames = try TransferMessage.frames(of: records)
    #expect(frames.count == 1)
    #expect(try Self.records(in: frames) == records)
    #expect(try TransferMessage.frames(of: []) == [])
  }

  @Test func theLargestRecords() throws {
    var record = Fixture.plain()
    // The body has its size, of four bytes, before it.
    record.originalRequest.body = [UInt8](
      repeating: 7, count: TransferRecord.bytesMax - (try record.encoded().count) - 4)
    let records = [Fixture.plain(), record, record, Fixture.plain()]
    let frames = try TransferMessage.frames(of: records)
    #expect(frames.count == 2)
    #expect(try Self.records(in: frames) == records)
  }

  /// A record that cannot be sent as it is leaves parts out, and the others are sent as they are.
  @Test func recordsThatCannotBeSent() throws {
    var records = (1...9).map { Fixture.fullDownload(task: $0) }
    records[3].response?.status = 1_000
    records[7].currentRequest?.body = [UInt8](repeating: 7, count: TransferFrame.bytesMax)
    let frames = try TransferMessage.frames(of: records)
    let read = try Self.records(in: frames)
    #expect(read.map(\.task) == records.map(\.task))
    #expect(read[3].response == nil && read[7].currentRequest?.body == nil && read[7].response != nil)
    for index in records.indices where index != 3 && index != 7 { #expect(read[index] == records[index]) }
    #expect(try TransferMessage(Self.frame(.notice(.changed(records[7])))) == .notice(.changed(read[7])))
    #expect(throws: TransferValueError.self) { try TransferMessage.command(.create(records[7])).encoded() }
  }
}
