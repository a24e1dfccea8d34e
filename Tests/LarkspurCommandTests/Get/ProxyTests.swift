import LarkspurCommand
import LarkspurTestServer
import TestKit
import Testing

/// Tests `larkspur get` through proxies. The test server plays the proxy and the server behind it.
@Suite struct ProxyTests {
  let proxy: TestServer

  init() throws {
    proxy = try TestServer()
  }

  /// Runs `larkspur get`. The host does not exist, so a lookup by the command would fail.
  private func get(
    _ url: String = "http://a.invalid/anything?x", _ arguments: String..., environment: [String: String] = [:]
  ) async throws -> Command.Result {
    try await Command(["get", url] + arguments, environment: environment).end()
  }

  private func targets() -> [String] { proxy.requests.map(\.target) }

  // MARK: - Plain requests

  @Test func absoluteForm() async throws {
    let result = try await get("http://a.invalid:81/anything?x", "-x", "http://me:secret@\(proxy.authority)")
    #expect(result.status == 0, "\(result.errors)")
    let request = try #require(proxy.requests.first)
    #expect(request.target == "http://a.invalid:81/anything?x")
    #expect(request.fields["Host"] == "a.invalid:81")
    #expect(request.fields["Proxy-Authorization"] == "Basic bWU6c2VjcmV0")
  }

  @Test func ownAuthorization() async throws {
    let result = try await get(
      "http://a.invalid/anything", "--proxy=me:x@\(proxy.authority)", "-H", "Proxy-Authorization: Digest y")
    #expect(result.status == 0, "\(result.errors)")
    #expect(proxy.requests.first?.fields.values("Proxy-Authorization") == ["Digest y"])
  }

  @Test func noAuthorizationForServers() async throws {
    let result = try await get(proxy.url(), "-H", "Proxy-Authorization: Digest y")
    #expect(result.status == 2)
    #expect(result.errors.contains("Proxy-Authorization is for proxies, and this request goes to none"))
    #expect(proxy.connectionsAccepted == 0)
  }

  // MARK: - Choice of the proxy

  @Test(arguments: ["http_proxy", "all_proxy", "ALL_PROXY"]) func variables(name: String) async throws {
    let result = try await get(environment: [name: proxy.authority])
    #expect(result.status == 0, "\(result.errors)")
    #expect(targets() == ["http://a.invalid/anything?x"])
  }

  /// `HTTP_PROXY` in capitals is ignored, since a client of a CGI program can set it. The server is connected directly.
  @Test func theVariableThatDoesNotCount() async throws {
    let result = try await get(proxy.url("/anything"), environment: ["HTTP_PROXY": "127.0.0.1:1"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(targets() == ["/anything"])
  }

  @Test func theOptionBeforeTheVariable() async throws {
    let result = try await get(
      "http://a.invalid/anything", "-x", proxy.authority, environment: ["http_proxy": "nonsense://x"])
    #expect(result.status == 0, "\(result.errors)")
    let direct = try await get(proxy.url("/anything"), "--proxy", "", environment: ["http_proxy": "127.0.0.1:1"])
    #expect(direct.status == 0, "\(direct.errors)")
    #expect(targets() == ["http://a.invalid/anything", "/anything"])
  }

  @Test(arguments: [
    (["--noproxy", "127.0.0.1"], [:]), (["--noproxy=*"], [:]), ([], ["no_proxy": "127.0.0.0/8"]),
    ([], ["NO_PROXY": "*"]), (["--noproxy=*"], ["no_proxy": "b.example"]),
  ])
  func exceptions(arguments: [String], environment: [String: String]) async throws {
    let result = try await Command(
      ["get", proxy.url("/anything"), "-x", "127.0.0.1:1"] + arguments, environment: environment
    ).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(targets() == ["/anything"])
  }

  @Test func noExceptionAnyMore() async throws {
    let result = try await get(
      proxy.url("/anything"), "-x", proxy.authority, "--noproxy", "", environment: ["no_proxy": "*"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(targets() == [proxy.url("/anything")])
  }

  // MARK: - Tunnels

  @Test(arguments: [true, false]) func https(isSecure: Bool) async throws {
    let server = try TLSServer()
    server.server.enqueue(
      TestServer.Script(
        (isSecure ? [] : [.beforeHandshake]) + [
          .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake, .serveRoutes,
        ]))
    let url = "\(isSecure ? "https" : "http")://me:secret@\(server.server.authority)"
    let result = try await Command(
      ["get", "https://localhost/bytes/9", "-v"],
      environment: ["https_proxy": url, "SSL_CERT_FILE": server.directory.path("root.pem")]
    ).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.output == TestServer.content(count: 9))
    #expect(result.errors.contains("a tunnel to localhost:443"))
    #expect(result.errors.contains("the tunnel is open"))
    #expect(!result.errors.contains("secret"))
    #expect(server.server.requests.map { $0.fields["Proxy-Authorization"] } == ["Basic bWU6c2VjcmV0", nil])
    #expect(server.server.requests.first?.fields["User-Agent"]?.hasPrefix("larkspur/") == true)
  }

  @Test func socks() async throws {
    proxy.enqueue([
      .expectBytes([5, 1, 0]), .send([5, 0]), .expectBytes([5, 1, 0, 3, 9] + Array("a.invalid".utf8) + [0, 80]),
      .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]), .serveRoutes,
    ])
    let result = try await get("http://a.invalid/anything", environment: ["ALL_PROXY": "socks5h://\(proxy.authority)"])
    #expect(result.status == 0, "\(result.errors)")
    #expect(targets() == ["/anything"])
  }

  // MARK: - Failures

  @Test func proxiesThatMakeNoSense() async throws {
    for (text, message) in [
      ("ftp://p", "--proxy: \"ftp\" is no kind of proxy: http, https, socks4, socks4a, socks5, socks5h are"),
      ("me:secret@p:0", "--proxy: the proxy's port is not a number from 1 to 65535"),
    ] {
      let result = try await get("http://a.invalid/", "-x", text)
      #expect(result.status == 5)
      #expect(result.errors == "larkspur: \(message)\n")
    }
    let variable = try await get(environment: ["all_proxy": "p:x/y"])
    #expect(variable.status == 5)
    #expect(variable.errors == "larkspur: all_proxy: the proxy's port is not a number from 1 to 65535\n")
  }

  /// A label of 64 bytes is invalid, so the name fails without a query to a name server.
  @Test(arguments: ["http", "socks5h"]) func anUnknownProxy(kind: String) async throws {
    let host = String(repeating: "x", count: 64) + ".invalid"
    let result = try await get("http://a.invalid/", "-x", "\(kind)://\(host):1")
    #expect(result.status == 5)
    #expect(result.errors.contains("proxy \(kind)://\(host):1: could not resolve \(host)"))
  }

  @Test func aProxyThatIsNotThere() async throws {
    for url in ["http://a.invalid/", "https://a.invalid/"] {
      let result = try await get(url, "-x", "127.0.0.1:1")
      #expect(result.status == 7)
      #expect(result.errors.contains("could not connect to the proxy http://127.0.0.1:1 ("))
    }
  }

  @Test func refusedBySOCKS() async throws {
    proxy.enqueue([.expectBytes(count: 3), .send([5, 0]), .expectBytes(count: 16), .send([5, 2]), .close])
    let result = try await get("http://a.invalid/", "-x", "socks5h://\(proxy.authority)")
    #expect(result.status == 97)
    #expect(
      result.errors == "larkspur: a.invalid:80: proxy socks5h://\(proxy.authority): "
        + "the proxy refuses: not allowed by its rules\n")
  }

  /// The body of a proxy's refusal is never written as the server's response.
  @Test func refusedTunnel() async throws {
    proxy.enqueue([
      .expectRequest("CONNECT", "a.invalid:443"),
      .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nhello"), .expectClose,
    ])
    let result = try await get("https://a.invalid/", "-i", "-x", proxy.authority)
    #expect(result.status == 56)
    #expect(result.output == [])
    #expect(
      result.errors == "larkspur: a.invalid:443: proxy http://\(proxy.authority): "
        + "the proxy refuses the tunnel with 403 Forbidden\n")
  }

  /// U+009B starts a control sequence of a terminal, as ESC [ does, so it is escaped.
  @Test func aReasonForTerminals() async throws {
    proxy.enqueue([.expectRequest, .send("HTTP/1.1 403 \u{9b}31m\r\nContent-Length: 0\r\n\r\n"), .close])
    let result = try await get("https://a.invalid/", "-x", proxy.authority)
    #expect(result.errors.hasSuffix("403 \\x9b31m\n"))
  }

  @Test func noTunnelInTime() async throws {
    proxy.enqueue([.expectRequest, .hang])
    let result = try await get("https://a.invalid/", "-x", proxy.authority, "--connect-timeout", "2.5")
    #expect(result.status == 28)
    #expect(result.errors.contains("timed out while asking the proxy for a tunnel (--connect-timeout)"))
  }
}
