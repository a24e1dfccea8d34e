import Foundation
import LarkspurHTTP
import Testing

/// The command lines, as a POSIX shell reads them.
@Suite struct CurlCommandTests {
  /// Runs the command by `/bin/sh`, with a function in place of curl that prints its words and its standard input.
  private func words(_ command: CurlCommand, includesSecrets: Bool = true) throws -> (words: [String], input: [UInt8]) {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    let text = command.text(includesSecrets: includesSecrets)
    process.arguments = [
      "-c",
      "curl() { for word in \"$@\"; do printf '%s\\000' \"$word\"; done; printf '\\001\\000'; cat; }\n\(text) </dev/null",
    ]
    if case .bytes = command.body, text.hasPrefix("printf") {
      process.arguments?[1].removeLast(" </dev/null".count)
    }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let data = Array(output.fileHandleForReading.readDataToEndOfFile())
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    let parts = data.split(separator: 0, omittingEmptySubsequences: false)
    let end = try #require(parts.firstIndex { $0.elementsEqual([1]) })
    return (
      parts[..<end].map { String(decoding: $0, as: UTF8.self) }, Array(data[parts[end].endIndex...].dropFirst())
    )
  }

  private func command(_ method: String, _ fields: FieldList = [], _ body: CurlCommand.Body = .none) -> CurlCommand {
    CurlCommand(method: method, url: "http://a.example/x?y='$(z)`\"[1]", fields: fields, body: body)
  }

  private let url = "http://a.example/x?y='$(z)`\"[1]"

  @Test func fields() throws {
    let fields = [Field("X", "it's $HOME \\ \"q\"\t!"), Field("Empty", ""), Field("Authorization", "Basic secret")]
    #expect(
      try words(command("GET", fields)).words == [
        "--globoff", "--header", "X: it's $HOME \\ \"q\"\t!", "--header", "Empty;", "--header",
        "Authorization: Basic secret", url,
      ])
    #expect(
      try words(command("DELETE", [fields[2]]), includesSecrets: false).words == [
        "--globoff", "--request", "DELETE", "--header", "Authorization: (redacted)", url,
      ])
    #expect(try words(command("HEAD")).words == ["--globoff", "--head", url])
  }

  @Test func bodies() throws {
    let type = Field("Content-Type", "application/x-www-form-urlencoded")
    let form = CurlCommand.Body.bytes(Array("a='b'\n&password=@x".utf8))
    #expect(
      try words(command("POST", [type], form)).words == [
        "--globoff", "--header", "Content-Type: application/x-www-form-urlencoded", "--data-raw",
        "a='b'\n&password=@x", url,
      ])
    #expect(
      try words(command("PUT", [type], form), includesSecrets: false).words.contains("a='b'\n&password=(redacted)"))
    let binary = (0...255).map { UInt8($0) } + Array("%d\\n'".utf8)
    let (words, input) = try words(command("POST", [], .bytes(binary)))
    #expect(words == ["--globoff", "--header", "Content-Type:", "--data-binary", "@-", url])
    #expect(input == binary)
    #expect(
      try self.words(command("PUT", [type], .file("/tmp/a b"))).words.contains("@/tmp/a b"))
  }

  @Test func secretsOfJSON() {
    let text =
      "{\"a\": \"access_token\", \"Access_Token\" : \"x\\\"y\", \"password\":[\"p\"], \"code\":\"E1\", \"token\":\"t"
    let type = Field("Content-Type", "application/json; charset=utf-8")
    let redacted = CurlCommand(method: "POST", url: "http://a", fields: [type], body: .bytes(Array(text.utf8)))
      .text(includesSecrets: false)
    #expect(
      redacted.contains(
        "{\"a\": \"access_token\", \"Access_Token\" : \"(redacted)\", \"password\":[\"p\"], \"code\":\"E1\", \"token\":\"(redacted)"
      ))
  }
}
