import LarkspurTestServer
import TestKit
import Testing

/// A failure has the same exit status whether or not redirections are followed. The numbers are the exit statuses of
/// curl 7.88.1 with the same peers.
@Suite struct FailureStatusTests {
  /// A peer that fails, and the exit status for its failure.
  struct Peer: Sendable, CustomTestStringConvertible {
    enum ConnectionEnd: Sendable { case close, reset, expectClose }

    var testDescription: String
    var bytes: String
    var end: ConnectionEnd
    var status: Int32

    init(_ name: String, _ bytes: String, _ status: Int32) { self.init(name, bytes, .close, status) }

    init(_ name: String, _ bytes: String, _ end: ConnectionEnd, _ status: Int32) {
      testDescription = name
      self.bytes = bytes
      self.end = end
      self.status = status
    }

    var steps: [TestServer.Step] {
      let last: TestServer.Step =
        switch end {
        case .close: .close
        case .reset: .reset
        case .expectClose: .expectClose
        }
      return [.expectRequest] + (bytes.isEmpty ? [] : [.send(bytes)]) + [last]
    }
  }

  static let ways: [[String]] = [[], ["-L"]]

  let server: TestServer

  init() throws {
    server = try TestServer()
  }

  private func check(
    _ arguments: [String], _ status: Int32, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    for way in Self.ways {
      let result = try await Command(["get"] + arguments + way).end()
      #expect(result.status == status, "\(arguments) \(way): \(result.errors)", sourceLocation: sourceLocation)
    }
  }

  // MARK: - Servers

  static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

  @Test(arguments: [
    Peer("nothing", "", 52), Peer("a reset at once", "", .reset, 56),
    Peer("an interim head", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 52),
    Peer("100 Continue", "HTTP/1.1 100 Continue\r\n\r\n", 52),
    Peer("an interim head, a reset", "HTTP/1.1 103 Early Hints\r\n\r\n", .reset, 56),
    Peer("three letters", "HTT", 52), Peer("half of a status line", "HTTP/1.1 20", 52),
    Peer("half of a second status line", "HTTP/1.1 103 E\r\n\r\nHTTP/1.1 2", 52),
    Peer("a status line", "HTTP/1.1 200 OK\r\n", 18),
    Peer("no empty line", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", 18),
    Peer("a reset in the head", "HTTP/1.1 200 OK\r\nA: ", .reset, 56),
    Peer("a short body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", 18),
    Peer("a reset in the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", .reset, 56),
    Peer("a reset in place of the end", "HTTP/1.1 200 OK\r\n\r\nhello", .reset, 56),
    Peer("the end in a chunk", chunked + "5\r\nhe", 18), Peer("the end after a chunk", chunked + "5\r\nhello\r\n", 18),
    Peer("the end in the trailers", chunked + "0\r\nA: b\r\n", 18),
    Peer("a reset after a chunk", chunked + "5\r\nhello\r\n", .reset, 56),
  ])
  func ends(peer: Peer) async throws {
    server.defaultScript = TestServer.Script(peer.steps)
    try await check([server.url()], peer.status)
  }

  static let long = String(repeating: "x", count: 1000)

  @Test(arguments: [
    Peer("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", .expectClose, 1),
    Peer("no status line", "nonsense\r\n\r\n", .expectClose, 1),
    Peer("HTTP/3.0", "HTTP/3.0 200 OK\r\n\r\n", .expectClose, 1),
    Peer("HTTP/0.9", "HTTP/0.9 200 OK\r\n\r\n", .expectClose, 1),
    Peer("a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", .expectClose, 1),
    Peer("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", .expectClose, 1),
    Peer("a status of letters", "HTTP/1.1 abc OK\r\n\r\n", .expectClose, 1),
    Peer("a length of letters", "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", .expectClose, 8),
    Peer("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", .expectClose, 8),
    Peer("a field without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", .expectClose, 8),
    Peer("a NUL in a field", "HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", .expectClose, 8),
    Peer(
      "a head that is too large",
      "HTTP/1.1 200 OK\r\n" + (0..<500).map { "A\($0): \(long)\r\n" }.joined() + "\r\n", .expectClose, 56),
    Peer("letters for a chunk's size", chunked + "xyz\r\nhello\r\n", .expectClose, 56),
    Peer("a chunk's size of 68 bits", chunked + "fffffffffffffffff\r\nhello\r\n", .expectClose, 56),
    Peer("a chunk's size of 64 bits", chunked + "ffffffffffffffff\r\nhello\r\n", .expectClose, 56),
    Peer("a chunk without an end", chunked + "5\r\nhelloXX0\r\n\r\n", .expectClose, 56),
    Peer(
      "gzip and chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      .expectClose, 61),
    Peer("gzip alone", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", .expectClose, 61),
    Peer(
      "an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo, chunked\r\n\r\n0\r\n\r\n", .expectClose, 61),
  ])
  func rules(peer: Peer) async throws {
    server.defaultScript = TestServer.Script(peer.steps)
    try await check([server.url()], peer.status)
  }

  // MARK: - Proxies

  @Test(arguments: [
    Peer("nothing", "", 56), Peer("a reset", "", .reset, 56),
    Peer("403", "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", .expectClose, 56),
    Peer(
      "407", "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", .expectClose, 56),
    Peer("302", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", .expectClose, 56),
    Peer("no status line", "nonsense\r\n\r\n", .expectClose, 56), Peer("half of a status line", "HTTP/1.1 2", 56),
    Peer("half of a head", "HTTP/1.1 200 OK\r\nA: ", 56),
    Peer("no TLS behind the tunnel", "HTTP/1.1 200 OK\r\n\r\n", 35),
  ])
  func tunnels(peer: Peer) async throws {
    server.defaultScript = TestServer.Script(peer.steps)
    try await check(["https://a.invalid/", "-x", "http://" + server.authority], peer.status)
  }

  @Test(
    arguments: [
      [], [5], [4, 0], [5, 0xff], [5, 7], [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0], [5, 0, 5, 2], [5, 0, 5, 5],
      [5, 0, 5, 9],
      [5, 0, 5, 0, 0], [5, 0, 7, 0, 0, 1, 0, 0, 0, 0, 0, 0], [5, 0, 5, 0, 0, 9, 0, 0, 0, 0, 0, 0],
    ] as [[UInt8]])
  func socks(answers: [UInt8]) async throws {
    var steps: [TestServer.Step] = [.expectBytes(count: 3), .send(Array(answers.prefix(2)))]
    if answers.count > 2 { steps += [.expectBytes(count: 16), .send(Array(answers.dropFirst(2)))] }
    server.defaultScript = TestServer.Script(steps + [.close])
    try await check(["http://a.invalid/", "-x", "socks5h://" + server.authority], 97)
  }

  @Test func socksThatIsReset() async throws {
    server.defaultScript = [.expectBytes(count: 3), .reset]
    try await check(["http://a.invalid/", "-x", "socks5h://" + server.authority], 97)
  }

  /// RFC 1928 5: the length of a name is one byte.
  @Test func longNamesBySOCKS() async throws {
    let host = String(repeating: "a.", count: 127) + "a"
    server.defaultScript = [
      .expectBytes(count: 3), .send([5, 0]), .expectBytes([5, 1, 0, 3, 255] + Array(host.utf8) + [0, 80]),
      .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), .serveRoutes,
    ]
    try await check(["http://\(host)/anything", "-x", "socks5h://" + server.authority], 0)
    #expect(server.requests.map { $0.fields["Host"] } == [host, host])
    server.defaultScript = [.expectClose]
    for way in Self.ways {
      let result = try await Command(["get", "http://\(host)a/", "-x", "socks5h://" + server.authority] + way).end()
      #expect(result.status == 97)
      #expect(result.errors.contains("the host's name is longer than 255 bytes"))
    }
    for scheme in ["http", "https"] {
      for name in [host, String(repeating: "x", count: 64)] { try await check(["\(scheme)://\(name)/"], 6) }
    }
  }

  static let proxyKinds = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

  /// Every kind of proxy works when given by the option and by the environment, for a name and for an address.
  @Test(arguments: proxyKinds) func kindsOfProxies(kind: String) async throws {
    let tls = try TLSServer()
    let proxy = kind == "https" ? tls.server : server
    let looksUp = kind == "socks4" || kind == "socks5"
    let host = looksUp ? "127.0.0.1" : "a.invalid"
    let name = Array(host.utf8)
    let socks: [TestServer.Step] =
      switch kind {
      case "socks4":
        [.expectBytes([4, 1, 0, 80, 127, 0, 0, 1, 0]), .send([0, 90, 0, 0, 0, 0, 0, 0])]
      case "socks4a":
        [.expectBytes([4, 1, 0, 80, 0, 0, 0, 1, 0] + name + [0]), .send([0, 90, 0, 0, 0, 0, 0, 0])]
      case "socks5":
        [
          .expectBytes([5, 1, 0]), .send([5, 0]), .expectBytes([5, 1, 0, 1, 127, 0, 0, 1, 0, 80]),
          .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ]
      case "socks5h":
        [
          .expectBytes([5, 1, 0]), .send([5, 0]), .expectBytes([5, 1, 0, 3, UInt8(name.count)] + name + [0, 80]),
          .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ]
      default: []
      }
    proxy.defaultScript = TestServer.Script(socks + [.serveRoutes])
    let address = "\(kind)://\(proxy.authority)"
    let url = "http://\(host)/anything"
    for way in Self.ways {
      for (arguments, environment) in [(["-x", address], [:]), ([], ["http_proxy": address])] {
        let result = try await Command(["get", url] + arguments + tls.trust + way, environment: environment).end()
        #expect(result.status == 0, "\(arguments) \(way): \(result.errors)")
        #expect(proxy.requests.last?.target == (kind.hasPrefix("http") ? url : "/anything"))
      }
    }
    #expect(proxy.requests.count == 4)
  }

  /// The options about a server's certificates apply to a proxy's certificate, too.
  @Test func certificatesOfProxies() async throws {
    let proxy = try TLSServer()
    proxy.server.defaultScript = [.serveRoutes]
    let arguments = ["http://a.invalid/anything", "-x", "https://" + proxy.server.authority]
    try await check(arguments, 60)
    try await check(arguments + ["--cacert", proxy.directory.path("missing")], 77)
    try await check(arguments + ["--cert", proxy.directory.path("missing")] + proxy.trust, 58)
    try await check(arguments + ["--insecure"], 0)
    for way in Self.ways {
      let result = try await Command(["get"] + arguments + ["--insecure"] + way).end()
      #expect(result.errors.hasPrefix("larkspur: warning: --insecure: the proxy's certificate is not verified"))
    }
    try await check(arguments + proxy.trust, 0)
    let other = try TLSServer(TestCertificate.Request(names: ["other.example"], ipAddresses: []), by: proxy.ca)
    try await check([arguments[0], "-x", "https://" + other.server.authority] + proxy.trust, 60)
    let asking = try TLSServer(by: proxy.ca) { $0.clientCertificate = .required }
    try await check([arguments[0], "-x", "https://" + asking.server.authority] + proxy.trust, 98)
    try await check(arguments + ["--tls-min", "1.3"] + proxy.trust, 0)
  }

  @Test func proxiesThatAreNotThere() async throws {
    for scheme in ["http", "https"] {
      for kind in Self.proxyKinds {
        // Unlike curl, the command resolves the server's name first if the kind of proxy needs an address.
        let url = scheme + (kind == "socks4" || kind == "socks5" ? "://127.0.0.1/" : "://a.invalid/")
        try await check([url, "-x", "\(kind)://127.0.0.1:1"], 7)
        try await check([url, "-x", "\(kind)://\(String(repeating: "x", count: 64)):1"], 5)
      }
    }
    try await check(["http://a.invalid/", "-x", "127.0.0.1:99999"], 5)
  }

  // MARK: - TLS

  @Test func tls() async throws {
    let server = try TLSServer()
    let url = server.server.url("/bytes/9")
    let missing = server.directory.path("missing")
    try server.directory.write("nonsense", to: "nonsense")
    let nonsense = server.directory.path("nonsense")
    try await check([url] + server.trust, 0)
    try await check([url], 60)
    try await check([url, "--cacert", missing], 77)
    try await check([url, "--cacert", nonsense], 77)
    try await check([url, "--cert", missing] + server.trust, 58)
    try await check([url, "--cert", nonsense] + server.trust, 58)
    try await check([url, "--pin", try TestCA().certificate.pin()] + server.trust, 90)
    for script: TestServer.Script in [
      [.beforeHandshake, .refuseHandshake(alert: 80)], [.beforeHandshake, .close(afterSending: 100), .handshake],
    ] {
      server.server.defaultScript = script
      try await check([url] + server.trust, 35)
    }
    // An alert after the handshake breaks the transfer in progress.
    for steps: [TestServer.Step] in [
      [.expectRequest, .sendAlert(80)], [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Le"), .sendAlert(80)],
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .sendAlert(80)],
    ] {
      server.server.defaultScript = TestServer.Script(steps + [.expectClose])
      try await check([url] + server.trust, 56)
    }
    let other = try TLSServer(TestCertificate.Request(names: ["other.example"], ipAddresses: []))
    try await check([other.server.url()] + other.trust, 60)
    let asking = try TLSServer { $0.clientCertificate = .required }
    try await check([asking.server.url()] + asking.trust, 98)
    let old = try TLSServer { $0.versions = .tls1_2 ... .tls1_2 }
    try await check([old.server.url(), "--tls-min", "1.3"] + old.trust, 35)
    let plain = try TestServer()
    plain.defaultScript = [.expectBytes(count: 5), .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .expectClose]
    try await check(["https://\(plain.authority)/"], 35)
  }

  // MARK: - Others

  @Test func others() async throws {
    let directory = try TemporaryDirectory()
    let missing = directory.path("missing")
    try await check(["ftp://a.invalid/"], 1)
    try await check(["http://a.invalid/", "--nonsense"], 2)
    try await check([server.url(), "-H", "A: b\u{1}"], 2)
    try await check(["http://[oops/"], 3)
    try await check(["http://a.invalid:99999/"], 3)
    try await check(["http://\(String(repeating: "x", count: 64)).invalid/"], 6)
    try await check(["http://127.0.0.1:1/"], 7)
    try await check([server.url("/status/404"), "-f"], 22)
    try await check([server.url("/bytes/9"), "-o", missing + "/x"], 23)
    try await check([server.url("/anything"), "-d", "@" + missing], 26)
    try await check([server.url("/hang"), "--max-time", "0.2"], 28)
  }
  /// Without HTTPS, and without redirections that could lead to HTTPS, the certificate files are not read.
  @Test func filesThatNothingNeeds() async throws {
    for way in [[], ["--metrics"]] {
      let arguments = ["get", server.url("/bytes/9"), "--cacert", "/nonexistent/file", "--cert", "/nonexistent/file"]
      #expect(try await Command(arguments + way).end().status == 0)
    }
  }
}
