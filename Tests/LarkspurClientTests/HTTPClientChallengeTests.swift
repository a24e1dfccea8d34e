import LarkspurClient
import LarkspurTestServer
import Synchronization
import Testing

/// A client's answers to challenges of servers.
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

  private func client(_ password: String?, _ questions: Questions = Questions()) -> HTTPClient {
    HTTPClientTests.client {
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
    let client = client("secret", questions)
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
    let client = client("secret")
    #expect(try await client.get(server.url("/basic/a")) { $0.status } == 200)
    #expect(try await client.get(server.url("/basic/away/x")) { $0.status } == 200)
    #expect(server.requests.last?.fields["Authorization"] != nil && other.requests.last?.fields["Authorization"] == nil)
  }
}
