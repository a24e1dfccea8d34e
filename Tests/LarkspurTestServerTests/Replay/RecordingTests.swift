import LarkspurTestServer
import Testing

/// Archives, which may come from anywhere.
@Suite struct RecordingTests {
  private func archive(_ entries: String) -> [UInt8] {
    Array("\u{feff}{\"log\":{\"version\":\"1.2\",\"creator\":{},\"entries\":[\(entries)]}}".utf8)
  }

  private static func entry(
    _ response: String = #""status":200,"headers":[],"content":{"text":"h\u00e9\ud83d\ude00\n"}"#, _ extra: String = ""
  ) -> String {
    #"{"request":{"method":"GET","url":"http://a/","headers":[{"name":"A","value":"b"}]\#(extra)},"response":{\#(response)},"#
      + #""timings":{"send":0,"wait":1.5e1,"receive":-1}}"#
  }

  @Test func entries() throws {
    let base64 =
      #""status":200,"headers":[{"name":"Content-Encoding","value":"gzip"},{"name":"X","value":"y"}],"#
      + #""content":{"text":"AAEC","encoding":"base64"}"#
    let recording = try TestServer.Recording(
      har: archive(
        Self.entry() + "," + Self.entry(base64, #","postData":{"text":"body"}"#) + ","
          + Self.entry(#""status":0,"headers":[]"#)))
    let first = TestServer.Recording.Entry(
      "GET", "http://a/", requestFields: ["A": "b"], body: Array("h\u{e9}\u{1f600}\n".utf8), wait: .milliseconds(15))
    var second = first
    second.body = [0, 1, 2]
    second.fields = ["X": "y"]
    second.requestBody = Array("body".utf8)
    #expect(recording.entries == [first, second])
  }

  @Test(arguments: [
    ("", "the archive is no JSON: a value is missing at byte 0"),
    ("{}", "the archive lacks log.entries"),
    (#"{"log":{"entries":[{}]}}"#, "entry 1: response.status is no number"),
    (#"{"log":{"entries":[]}} x"#, "the archive is no JSON: something follows the value at byte 23"),
    (#"{"a":"\ud800"}"#, "the archive is no JSON: half of a pair of surrogates at byte 12"),
    (String(repeating: "[", count: 100_000), "the archive is no JSON: values are nested more than 64 deep at byte 64"),
    (#"{"log":{"entries":[\#(entry(#""status":99,"headers":[]"#))]}}"#, "entry 1: response.status is 99"),
    (
      #"{"log":{"entries":[\#(entry(#""status":200,"headers":[{"name":"a","value":"b\r\nc"}]"#))]}}"#,
      "entry 1: response.headers has an element that is no field"
    ),
    (
      #"{"log":{"entries":[\#(entry(#""status":200,"headers":[],"content":{"_truncated":true}"#))]}}"#,
      "entry 1: only the beginning of the response's body is recorded"
    ),
    (
      #"{"log":{"entries":[\#(entry(#""status":200,"headers":[],"content":{"text":"*","encoding":"base64"}"#))]}}"#,
      "entry 1: the response's body is no Base64"
    ),
  ]) func refused(_ text: String, _ reason: String) {
    do {
      _ = try TestServer.Recording(har: Array(text.utf8))
      Issue.record("the archive is accepted")
    } catch {
      #expect(error.description == reason)
    }
  }

  /// An archive with a changed byte, or its beginning, is read or refused.
  @Test func damaged() {
    let whole = archive(Self.entry())
    for index in whole.indices {
      #expect(throws: TestServer.Recording.Invalid.self) { try TestServer.Recording(har: Array(whole[..<index])) }
      for byte in [0, UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "{"), UInt8(ascii: "-"), 0xff] {
        var bytes = whole
        bytes[index] = byte
        _ = try? TestServer.Recording(har: bytes)
      }
    }
  }

  @Test func missingFile() {
    #expect(throws: TestServer.Recording.Invalid.self) { try TestServer.Recording(contentsOf: "/nowhere.har") }
  }
}
