import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// The program of the page Retrying, against an API that fails now and then.
@Suite struct RetryingPageTests {
  /// The items of an API that is busy now and then, and whose tokens expire.
  struct Items {
    let api: URL
    let session: URLSession

    init(api: URL, token: String, refreshToken: String) {
      self.api = api
      let login = URLSession(configuration: .ephemeral)
      let tokens = URLSession.BearerTokenInterceptor(token, for: [api]) { _ in
        var request = URLRequest(url: api.appending(path: "token"))
        request.httpMethod = "POST"
        request.httpBody = Data("grant_type=refresh_token&refresh_token=\(refreshToken)".utf8)
        let (data, _) = try await login.data(for: request)
        return try JSONDecoder().decode([String: String].self, from: data)["access_token"] ?? ""
      }
      var retries = URLSession.RetryPolicy.standard
      retries.rules.attemptsMax = 5
      retries.rules.firstDelay = .milliseconds(100)
      let configuration = URLSessionConfiguration.default
      configuration.interceptors = [tokens, retries]
      session = URLSession(configuration: configuration)
    }

    func all() async throws -> [String] {
      let (data, _) = try await session.data(from: api.appending(path: "items"))
      return try JSONDecoder().decode([String].self, from: data)
    }
  }

  @Test func theProgram() async throws {
    let server = try TestServer()
    server.route("POST", "/v1/token") { _ in .text(#"{"access_token": "new"}"#) }
    server.route("GET", "/v1/items") { request in
      .text(#"["one", "two"]"#, status: request.fields["Authorization"] == "Bearer new" ? 200 : 401)
    }
    let busy: TestServer.Script = [
      .expectRequest, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close,
    ]
    server.enqueue(busy, [.expectRequest, .reset])
    let api = try #require(URL(string: server.url("/v1")))
    let items = Items(api: api, token: "old", refreshToken: "secret")
    defer { items.session.invalidateAndCancel() }
    #expect(try await items.all() == ["one", "two"])
    let targets = server.requests.map(\.target)
    #expect(targets == ["/v1/items", "/v1/items", "/v1/items", "/v1/token", "/v1/items"])
  }

  /// Every Swift example of the page is in this file.
  @Test func everyExampleIsCompiled() throws {
    func dense(_ text: String) -> String { String(text.filter { !$0.isWhitespace }) }
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    let source = dense(try String(contentsOf: URL(filePath: #filePath), encoding: .utf8))
    let page = try String(
      contentsOf: root.appending(path: "Sources/Larkspur/Larkspur.docc/Retrying.md"), encoding: .utf8)
    let examples = page.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    #expect(examples.count == 1)
    for example in examples {
      let lines = example.split(separator: "\n").filter { !$0.hasPrefix("import ") }
      #expect(source.contains(dense(lines.joined())), "\(example)")
    }
  }
}
