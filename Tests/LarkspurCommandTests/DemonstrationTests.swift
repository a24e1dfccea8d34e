import Testing

@Suite struct DemonstrationTests {
  @Test func everyPart() async throws {
    let result = try await Command([], of: "LarkspurDemonstration").end()
    #expect(result.status == 0, "\(result.text)")
    #expect(result.errors == "")
    #expect(!result.text.contains("\u{1b}"))
    let lines = result.text.split(separator: "\n")
    let table = lines.drop { !$0.hasPrefix("What ") }
    #expect(table.dropFirst().dropLast().allSatisfy { $0.contains(" ok ") && $0.hasSuffix("s") })
    for title in [
      "A JSON request", "1,000 requests over one connection", "A stream, line by line", "A download of 64 MiB",
      "A server that lies about its length", "A pinned request over HTTPS", "A server without the pinned key",
      "A resumed TLS session", "A download, cancelled at 40 % and resumed", "A Digest login",
      "A cached answer, revalidated", "JSON, compressed on its way", "A WebSocket that echoes",
      "An event stream, resumed until its end",
    ] {
      #expect(table.contains { $0.hasPrefix(title) })
    }
    #expect(table.last == "All \(table.count - 2) parts went well.")
    #expect(result.text.contains("1,000 requests, and 1 connection."))
    #expect(result.text.contains("bad response: the connection ended with 1000 bytes of the body missing"))
    // The key that one part pins is the root's key that the other part reports.
    let pinned = result.text.matches(of: /pinned: (sha256\/\S{44})\n/).map { String($0.output.1) }
    #expect(pinned.count == 2 && Set(pinned).count == 2)
    let seen = result.text.matches(of: /seen:   (sha256\/\S{44})\n/).map { String($0.output.1) }
    #expect(seen.count == 2 && seen.last == pinned.first)
    #expect(result.text.contains("GET /album, Range: bytes=6710886-: 206"))
    #expect(result.text.contains("GET /nest, Authorization: none\n"))
    #expect(result.text.contains("GET /nest, Authorization: Digest ..., without the password\n"))
    #expect(result.text.contains("200 with 262,144 bytes, 0 of them by wire"))
    #expect(result.text.contains("GET /echo (101), a ping and its pong"))
    #expect(result.text.contains("4 connections, the last one with status 204"))
    #expect(result.text.contains("full    handshake, TLS 1.3: "))
    #expect(result.text.contains("resumed handshake, TLS 1.3: "))
  }

  @Test func onATerminal() async throws {
    let result = try await Command([], of: "LarkspurDemonstration", output: .terminal).end()
    #expect(result.status == 0)
    #expect(result.text.contains("\u{1b}[1m"))
    #expect(result.text.contains("100% ["))
  }
}
