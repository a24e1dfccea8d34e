import Foundation
import LarkspurTestServer
import TestKit
import Testing

@testable import LarkspurCommand

@Suite struct WriteOutFormatTests {
  /// Before a request everything is zero or empty.
  @Test(arguments: [
    ("plain", "plain"), ("", ""), (#"a\nb\tc\rd\qe\"#, "a\nb\tc\rd\\qe\\"), ("100%% %", "100% %"), ("%z%", "%z%"),
    ("%%{http_code}", "%{http_code}"), ("%{http_code}", "000"), ("[%{num_redirects}]", "[0]"),
    ("%{time_total}", "0.000000"), ("%{url}|%{remote_ip}|%{http_version}|%{scheme}", "http://a/||0|"),
    ("%header{X}.", "."), ("é%{http_code}é", "é000é"), ("a%{onerror}b", "a"), ("%{header_json}", "{\n}"),
  ])
  func texts(format: String, text: String) throws {
    let parts = try WriteOut(format).text(of: TransferReport(url: "http://a/"))
    #expect(parts.map(\.text) == [text])
  }

  @Test func streams() throws {
    var report = TransferReport(url: "http://a/")
    report.failure = CommandFailure(.connectFailed, "say \"no\"\u{1b}")
    let parts = try WriteOut("a%{stderr}b%{stdout}%{onerror}c%{exitcode}").text(of: report)
    #expect(parts.map(\.isErrors) == [false, true, false])
    #expect(parts.map(\.text) == ["a", "b", "c7"])
    let shown = try WriteOut("%{errormsg}").text(of: report, isShown: { !$0 })
    #expect(shown.map(\.text) == [#"say "no"\x1b"#])
  }

  @Test(arguments: [
    ("%{http_cod}", "--write-out knows no variable http_cod (did you mean http_code?)"),
    ("%{certs}", "--write-out knows no variable certs"), ("%{}", "--write-out knows no variable "),
    ("a%{http_code", "--write-out: the } of %{ is missing"), ("%header{x", "--write-out: the } of %header{ is missing"),
    ("%output{x}", "--write-out knows no %output{}"),
  ])
  func errors(format: String, message: String) {
    #expect(throws: UsageError(message)) { try WriteOut(format) }
  }

  @Test(arguments: ["%{http_code}", "%header{x}", "%{header_json}", "%{url}%{time_connect}"])
  func aDownloadInPiecesHasNoOneResponse(format: String) throws {
    for option in [
      ["--connections", "2"], ["--mirror", "http://b/"], ["--checksum", "md5:" + String(repeating: "0", count: 32)],
    ] {
      let arguments = ["get", "http://a/", "-o", "f", "-w", format] + option
      let error = #expect(throws: UsageError.self) { try Invocation(parsing: arguments[...]) }
      #expect(error?.description.contains("a download in pieces has several") == true)
    }
  }

  @Test func everyVariableIsInTheObject() throws {
    var report = TransferReport(url: "http://a/")
    report.failure = CommandFailure(.connectFailed, "say \"no\"\u{1b}")
    let object = try #require(try JSONSerialization.jsonObject(with: Data(report.json.utf8)) as? [String: Any])
    #expect(object.keys.sorted() == TransferReport.variables.map(\.name))
    #expect(object["http_code"] as? Int == 0)
    #expect(object["errormsg"] as? String == "say \"no\"\u{1b}")
    #expect(object["method"] is NSNull)
    report.pieces = (10, .milliseconds(2500))
    #expect(
      try WriteOut("%{size_download} %{time_total} %{speed_download}").text(of: report).map(\.text) == ["10 2.500000 4"]
    )
    let ofPieces = try #require(try JSONSerialization.jsonObject(with: Data(report.json.utf8)) as? [String: Any])
    #expect(ofPieces.keys.sorted() == TransferReport.variables.filter(\.isOfPieces).map(\.name))
  }
}

@Suite struct WriteOutTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String..., input: [UInt8] = []) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end(input: input)
  }

  @Test func factsOfATransfer() async throws {
    let result = try await get(
      "/bytes/1000", "-o", directory.path("new"), "-w",
      "%{http_code} %{size_download} %{num_redirects} %{num_connects} %{remote_port} %{filename_effective} %{method} "
        + #"%{scheme} %{http_version} %{exitcode} %header{content-length} %{url_effective}\n"#)
    #expect(result.status == 0)
    #expect(
      result.text
        == "200 1000 0 1 \(server.port) \(directory.path("new")) GET HTTP 1.1 0 1000 \(server.url("/bytes/1000"))\n")
  }

  @Test func objectOfATransfer() async throws {
    let result = try await get(
      "/redirect/1", "-L", "-o", "/dev/null", "-w", "@-", input: Array("%{json}".utf8))
    let object = try #require(try JSONSerialization.jsonObject(with: Data(result.output)) as? [String: Any])
    func seconds(_ name: String) -> Double { object[name] as? Double ?? -1 }
    #expect(object["num_redirects"] as? Int == 1)
    #expect(object["url"] as? String == server.url("/redirect/1"))
    #expect(object["url_effective"] as? String == server.url("/get"))
    #expect(object["local_ip"] as? String == object["remote_ip"] as? String)
    #expect(object["content_type"] is String)
    #expect(seconds("time_redirect") > 0)
    #expect(seconds("time_redirect") <= seconds("time_pretransfer"))
    #expect(seconds("time_pretransfer") <= seconds("time_starttransfer"))
    #expect(seconds("time_starttransfer") <= seconds("time_total"))
  }

  @Test func fields() async throws {
    server.route("GET", "/fields") { _ in
      .init(fields: ["X-A": "one", "Set-Cookie": "a=1", "set-cookie": "b=\"2\""])
    }
    let result = try await get("/fields", "-w", "%header{x-a}|%header{SET-COOKIE}|%{header_json}")
    #expect(result.text.hasPrefix("one|a=1|{"), "\(result.text)")
    let text = Data(result.text.split(separator: "|", maxSplits: 2).last.map { Array($0.utf8) } ?? [])
    let object = try #require(try JSONSerialization.jsonObject(with: text) as? [String: [String]])
    #expect(object["set-cookie"] == ["a=1", "b=\"2\""])
  }

  @Test func aRedirectionThatIsNotFollowed() async throws {
    let format = "%{http_code} %{redirect_url}"
    #expect(try await get("/redirect/1", "-o", "/dev/null", "-w", format).text == "302 \(server.url("/get"))")
    let limited = try await get("/redirect/2", "-L", "--max-redirs", "1", "-o", "/dev/null", "-w", format)
    #expect(limited.status == 47)
    #expect(limited.text == "302 \(server.url("/get"))")
  }

  /// The text is written after a failure, too, and after the message.
  @Test func failures() async throws {
    let refused = try await Command.run(
      "get", "http://u:secret@127.0.0.1:1/", "-w", "%{stderr}%{http_code} %{exitcode} %{url}")
    #expect(refused.status == 7)
    #expect(refused.errors.hasPrefix("larkspur: could not connect"))
    #expect(refused.errors.hasSuffix("\n000 7 http://127.0.0.1:1/"))
    let failed = try await get("/status/404", "-sf", "-w", "%{onerror}%{http_code} %{errormsg}")
    #expect(failed.status == 22)
    #expect(failed.text == "404 \(server.authority): the server answered with 404 Not Found")
    let cut = try await get(
      "/lie/100", "-s", "-o", directory.path("new"), "--retry", "0", "-w", "%{exitcode} %{http_code}")
    #expect(cut.status == 18)
    #expect(cut.text == "18 200")
  }

  /// Each file of a list has its own text.
  @Test func downloadsInPieces() async throws {
    try directory.write("\(server.url("/bytes/10"))  out=a\n\(server.url("/status/404"))  out=b\n", to: "list")
    let result = try await Command([
      "get", "-i", directory.path("list"), "--output-dir", directory.path, "-Z", "1", "-w",
      #"%{filename_effective} %{size_download} %{exitcode}\n"#,
    ]).end()
    #expect(result.status == 22, "\(result.errors)")
    #expect(result.text == "\(directory.path("a")) 10 0\n\(directory.path("b")) 0 22\n")
  }

  @Test func mistakesAreRefusedFirst() async throws {
    let unknown = try await get("/get", "-w", "%{nonsense}")
    #expect(unknown.status == 2)
    #expect(unknown.errors.contains("--write-out knows no variable nonsense"))
    #expect(try await get("/get", "-w", "@" + directory.path("none")).status == 2)
    #expect(server.connectionsAccepted == 0)
  }
}
