import LarkspurClient
import LarkspurTestServer
import Synchronization
import Testing

/// A client's answers to challenges of servers and proxies.
@Suite struct HTTPClientChallengeTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
    let basic = "Basic dXNlcjpzZWNyZXQ="
    server.route("*", "/basic/{name}") { request in
      if request.fields["Authorization"] == basic { return .text(request.bodyText) }
      return TestServer.Response(
        status: 401, fields: ["WWW-Authenticate": "Basic realm=\"r\""], body: .text("no entry"))
    }
    server.route("GET", "/digest") { request in
      if request.fields["Authorization"]?.contains("username=\"user\"") == true { return .text("in") }
      return TestServer.Response(
        status: 401, fields: ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"],
        body: .text(""))
    }
  }

  private func client(
    _ password: String?, _ questions: Questions = Questions(), proxy: TestServer? = nil
  ) throws -> HTTPClient {
    var settings = ProxySettings()
    settings.all = try proxy.map { try Proxy("http://\($0.authority)") }
    return HTTPClientTests.client { [settings] in
      if proxy != nil { $0.proxy = .settings(settings) }
      $0.credential = { challenge in
        questions.list.withLock { $0.append(challenge) }
        return password.map { PasswordCredential(user: "user", password: $0) }
      }
    }
  }

  private final class Questions: Sendable {
    let list = Mutex<[HTTPClient.Challenge]>([])
  }

  /// What a server has accepted is sent without a question from then on.
  @Test func basic() async throws {
    let questions = Questions()
    let client = try client("secret", questions)
    for name in ["a", "b"] {
      let body = try await client.post(server.url("/basic/\(name)"), .text(name), contentType: "text/plain") {
        try await $0.body.collect(upTo: 100)
      }
      #expect(body == Array(name.utf8))
    }
    let asked = questions.list.withLock { $0 }
    #expect(asked.count == 1 && asked.first?.realm == "r" && asked.first?.isDigest == false)
    #expect(server.requestsReceived == 3 && server.connectionsAccepted == 1)
  }

  @Test func digest() async throws {
    #expect(try await client("secret").get(server.url("/digest")) { $0.status } == 200)
    #expect(server.requests.last?.fields["Authorization"]?.contains("nc=00000001") == true)
  }

  /// A credential that the server refuses is sent once.
  @Test(arguments: [("wrong", 2), (nil, 1)] as [(String?, Int)])
  func aRefusal(password: String?, requests: Int) async throws {
    let questions = Questions()
    let (status, body) = try await client(password, questions).get(server.url("/basic/a")) {
      ($0.status, try await $0.body.collect(upTo: 100))
    }
    #expect(status == 401 && body == Array("no entry".utf8) && server.requestsReceived == requests)
    #expect(questions.list.withLock { $0.count } == 1)
  }

  /// Without the option, a challenge is a response like any other.
  @Test func withoutCredentials() async throws {
    #expect(try await HTTPClientTests.client().get(server.url("/basic/a")) { $0.status } == 401)
  }

  /// A redirection to another origin takes no credential with it.
  @Test func anotherOriginGetsNothing() async throws {
    let other = try TestServer()
    server.route("GET", "/basic/away/x") { _ in .redirect(to: other.url("/anything")) }
    let client = try client("secret")
    #expect(try await client.get(server.url("/basic/a")) { $0.status } == 200)
    #expect(try await client.get(server.url("/basic/away/x")) { $0.status } == 200)
    #expect(server.requests.last?.fields["Authorization"] != nil && other.requests.last?.fields["Authorization"] == nil)
  }

  // MARK: - Proxies

  /// A proxy that forwards requests: its password is not the server's, and is sent without a question from then on.
  @Test func aProxyThatForwards() async throws {
    let basic = "Basic dXNlcjpzZWNyZXQ="
    let proxy = try TestServer()
    proxy.defaultScript = [
      .expectRequest,
      .send(
        "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"
      ),
      .repeat([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")]),
    ]
    let questions = Questions()
    let client = try client("secret", questions, proxy: proxy)
    for path in ["x", "y"] {
      #expect(try await client.get("http://a.example/\(path)") { $0.status } == 200)
    }
    let asked = questions.list.withLock { $0 }
    #expect(asked.count == 1 && asked.first?.isProxy == true && asked.first?.realm == "p")
    #expect(asked.first?.host == "127.0.0.1" && asked.first?.isSecure == false)
    #expect(proxy.requests.map { $0.fields["Proxy-Authorization"] } == [nil, basic, basic])
    #expect(proxy.requests.allSatisfy { $0.fields["Authorization"] == nil })
  }

  /// A proxy that opens a tunnel, with a password or without.
  @Test(arguments: ["secret", nil] as [String?]) func aProxyThatTunnels(password: String?) async throws {
    let proxy = try TestServer()
    proxy.defaultScript = [
      .expectRequest("CONNECT", "a.example:443"),
      .send("HTTP/1.1 407 No\r\nProxy-Authenticate: Digest realm=\"p\", nonce=\"n\"\r\nContent-Length: 0\r\n\r\n"),
      .expectRequest("CONNECT", "a.example:443"), .send("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"), .close,
    ]
    let questions = Questions()
    let client = try client(password, questions, proxy: proxy)
    #expect(
      await HTTPClientTests.failure { _ = try await client.get("https://a.example/") { $0.status } } == .proxyFailed)
    let asked = questions.list.withLock { $0 }
    #expect(asked.count == 1 && asked.first?.isProxy == true && asked.first?.isDigest == true)
    let sent = proxy.requests.map { $0.fields["Proxy-Authorization"]?.contains("uri=\"a.example:443\"") }
    #expect(sent == (password == nil ? [nil] : [nil, true]))
  }

  /// A server behind a tunnel, or without a proxy, cannot ask for a proxy's password.
  @Test func aServerIsNoProxy() async throws {
    server.route("GET", "/407") { _ in
      TestServer.Response(status: 407, fields: ["Proxy-Authenticate": "Basic realm=\"p\""], body: .text(""))
    }
    let questions = Questions()
    #expect(try await client("secret", questions).get(server.url("/407")) { $0.status } == 407)
    #expect(questions.list.withLock { $0.isEmpty } && server.requestsReceived == 1)
  }
}
