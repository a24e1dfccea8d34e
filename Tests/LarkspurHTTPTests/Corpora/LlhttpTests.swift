import Foundation
import FuzzOracles
import LarkspurHTTP
import TestKit
import Testing

/// The response cases of llhttp's tests, whose log gives the position of each part of the message in the input.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct LlhttpTests {
  struct Case: Decodable {
    struct Meta: Decodable {
      var type: String
      var skipBody: Bool?
    }

    var title: String
    var meta: Meta
    var input: [UInt8]
    var log: [String]
    var verdict: String
    var error: String?

    enum CodingKeys: String, CodingKey {
      case title, meta, log, verdict, error
      case input = "input_hex"
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      title = try container.decode(String.self, forKey: .title)
      meta = try container.decode(Meta.self, forKey: .meta)
      let text = try bytes(hex: container.decode(String.self, forKey: .input))
      // Where two cases of the suite have been merged into one, the log belongs to the last one.
      let lastStart = text.indices.last { text[$0...].starts(with: "```http\r\n".utf8) }
      input = Array(text[(lastStart.map { $0 + 9 } ?? 0)...])
      log = try container.decode([String].self, forKey: .log)
      verdict = try container.decode(String.self, forKey: .verdict)
      error = try container.decodeIfPresent(String.self, forKey: .error)
    }

    /// Whether the case ends with an upgrade: llhttp pauses there to hand the remaining bytes over.
    var isTunnel: Bool { error?.contains("Pause on CONNECT/Upgrade") == true }
    var isLenient: Bool { meta.type.contains("lenient") }

    /// The bytes that the log's offsets refer to: the log reads every input as UTF-8, although one is Latin-1.
    var logged: [UInt8] {
      String(validating: input, as: UTF8.self) != nil
        ? input : Array(String(decoding: input.map(UInt16.init), as: UTF16.self).utf8)
    }
  }

  /// One message of a log, interim or final.
  struct Message: Equatable {
    var status: Int?
    var version = ""
    var reason = ""
    var fields: [Transcript.Field] = []
    var body: [UInt8] = []
    var isComplete = false
  }

  /// Parses lines such as `off=0 message begin` and `off=4 len=3 span[body]="..."`. Only offsets and lengths are used;
  /// the text comes from the input.
  private static func messages(of test: Case) -> [Message] {
    var messages: [Message] = []
    var isInValue = false
    let logged = test.logged
    for line in test.log {
      let fields = line.split(separator: " ", maxSplits: 2).map(String.init)
      guard fields.count > 1, let offset = Int(fields[0].dropFirst("off=".count)) else { continue }
      if line.hasSuffix("message begin") { messages.append(Message()) }
      guard var message = messages.popLast() else { continue }
      defer { messages.append(message) }
      if line.hasSuffix("message complete") { message.isComplete = true }
      if let status = line.split(separator: "status=").last, line.contains("headers complete") {
        message.status = Int(status.prefix { $0.isNumber })
        // llhttp keeps trailing white space of a value.
        for index in message.fields.indices {
          message.fields[index].value = message.fields[index].value.trimmingCharacters(in: .whitespaces)
        }
      }
      guard fields[1].hasPrefix("len="), let length = Int(fields[1].dropFirst("len=".count)), fields.count > 2 else {
        continue
      }
      let bytes = logged[offset..<(offset + length)]
      let text = String(decoding: bytes, as: UTF8.self)
      switch fields[2].prefix(while: { $0 != "]" }) {
      case "span[version": message.version = text
      case "span[status": message.reason += text
      case "span[header_field":
        if message.fields.isEmpty || isInValue { message.fields.append(.init(name: "", value: "")) }
        message.fields[message.fields.count - 1].name += text
        isInValue = false
      case "span[header_value":
        message.fields[message.fields.count - 1].value += text
        isInValue = true
      case "span[body": message.body += bytes
      default: break
      }
      // An empty value has no span.
      if line.hasSuffix("header_value complete") { isInValue = true }
    }
    return messages
  }

  private static func messages(of transcript: Transcript) -> [Message] {
    var messages: [Message] = []
    for entry in transcript.entries {
      switch entry {
      case .interim(let head), .head(let head):
        var message = Message(status: head.status, version: "1.\(head.minorVersion)", reason: head.reason)
        message.fields = head.fields
        if case .interim = entry { message.isComplete = true }
        messages.append(message)
      case .body(let bytes): messages[messages.count - 1].body += bytes
      // llhttp does not see the connection's close, so it does not know that these messages are complete.
      case .end: messages[messages.count - 1].isComplete = transcript.heads.last?.framing != .untilClose
      case .tunnel, .failed, .broken: break
      }
    }
    return messages
  }

  @Test func allCases() throws {
    let cases = try Corpora.decode([Case].self, from: "llhttp/cases.json")
    #expect(cases.count > 80)
    for test in cases {
      let expected = Self.messages(of: test)
      let finals = max(expected.count { $0.status.map { $0 >= 200 } ?? true }, 1)
      let request = RequestContext(method: test.meta.skipBody == true ? .head : .other, offersUpgrade: test.isTunnel)
      let transcript = read(test.input, requests: Array(repeating: request, count: finals))
      let about = Comment(rawValue: "\(test.title): \(transcript.lines)")

      if let deviation = Deviation.of(.llhttp, test.title), deviation.ours == .accepted {
        #expect(test.verdict == "error" || test.isLenient, about)
        #expect(transcript.error == nil, about)
      } else if let deviation = Deviation.of(.llhttp, test.title) {
        #expect(test.verdict == "ok" && !test.isLenient, about)
        #expect(transcript.error.map { .refused($0) } == deviation.ours, about)
      } else if test.isTunnel {
        let behind = test.input.count - (transcript.heads.last?.byteCount ?? 0)
        #expect(transcript.entries.last == .tunnel(test.input.suffix(behind)), about)
      } else if test.verdict == "error" || test.isLenient {
        // Input that llhttp accepts only in lenient mode is refused here.
        let error = try #require(transcript.error, about)
        if case .truncated = error { Issue.record(about) }
      } else {
        // A message that has only begun at the end of the input has no status yet.
        #expect(Self.messages(of: transcript) == expected.filter { $0.status != nil }, about)
        switch transcript.error {
        case nil, .truncated: break
        default: Issue.record(about)
        }
      }
    }
  }
}
