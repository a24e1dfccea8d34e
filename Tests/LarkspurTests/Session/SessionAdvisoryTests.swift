import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests security advisories of other HTTP clients that concern a session as a whole.
@Suite(.timeLimit(.minutes(1))) struct SessionAdvisoryTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  @Test("CVE-2015-3153: a proxy is told what is for the origin")
  func aTunnelIsAskedForByTheProxysFieldsAlone() async throws {
    server.enqueue([
      .expectRequest("CONNECT", "a.example:443"), .send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), .close,
    ])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [
      "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": server.port,
    ]
    configuration.httpAdditionalHeaders = ["Authorization": "Bearer x", "X-Program": "y"]
    var request = URLRequest(url: try #require(URL(string: "https://a.example/")))
    for name in ["Authorization", "Cookie", "Referer", "X-Own"] { request.setValue("z", forHTTPHeaderField: name) }
    let session = URLSession(configuration: configuration)
    await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(server.requests.map { $0.fields.map { $0.name.lowercased() }.sorted() } == [["host", "user-agent"]])
    session.invalidateAndCancel()
  }

  @Test("CVE-2026-4873: a request that has to be secret goes out on a connection without TLS")
  func noConnectionWithoutTLSServesHTTPS() async throws {
    let session = URLSession(configuration: .ephemeral)
    _ = try await session.data(from: url("/get"))
    var parts = try #require(URLComponents(url: url("/get"), resolvingAgainstBaseURL: false))
    parts.scheme = "https"
    let secure = try #require(parts.url)
    await #expect(throws: URLError.self) { try await session.data(from: secure) }
    #expect(server.requestsReceived == 1)
    session.invalidateAndCancel()
  }

  @Test("CVE-2026-6276: cookies are chosen by the Host field")
  func cookiesAreOfTheURL() async throws {
    server.route("GET", "/set") { _ in .init(fields: ["Set-Cookie": "a=b"]) }
    let configuration = URLSessionConfiguration.ephemeral
    let storage = try #require(configuration.httpCookieStorage)
    storage.setCookie(
      try #require(HTTPCookie(properties: [.name: "s", .value: "t", .domain: "victim.example", .path: "/"])))
    let session = URLSession(configuration: configuration)
    var request = URLRequest(url: try url("/set"))
    request.setValue("victim.example", forHTTPHeaderField: "Host")
    _ = try await session.data(for: request)
    _ = try await session.data(from: url("/get"))
    #expect(server.requests.map { $0.fields["host"] } == ["victim.example", server.authority])
    #expect(server.requests.map { $0.fields["cookie"] } == [nil, "a=b"])
    #expect(storage.cookies?.first { $0.name == "a" }?.domain == "127.0.0.1")
    session.invalidateAndCancel()
  }

  @Test("CVE-2022-32221: a request is sent as the one before it")
  func nothingIsCarriedFromTaskToTask() async throws {
    let session = URLSession(configuration: .ephemeral)
    var put = URLRequest(url: try url("/put"))
    put.httpMethod = "PUT"
    put.httpBodyStream = InputStream(data: Data("stream".utf8))
    var post = URLRequest(url: try url("/post"))
    post.httpMethod = "POST"
    post.httpBody = Data("post".utf8)
    _ = try await session.data(for: put)
    _ = try await session.data(for: post)
    _ = try await session.data(from: url("/get"))
    #expect(server.connectionsAccepted == 1)
    #expect(server.requests.map(\.method) == ["PUT", "POST", "GET"])
    #expect(server.requests.map(\.bodyText) == ["stream", "post", ""])
    #expect(server.requests.map { $0.fields["transfer-encoding"] } == ["chunked", nil, nil])
    #expect(server.requests.map { $0.fields["content-length"] } == [nil, "4", nil])
    session.invalidateAndCancel()
  }

  @Test("CVE-2021-22876: a password goes to where a redirection leads")
  func noRefererIsMade() async throws {
    let second = try TestServer()
    let there = second.url("/get")
    server.route("GET", "/away") { _ in .redirect(to: there) }
    let text = server.url("/away#part").replacing("http://", with: "http://user:password@")
    let session = URLSession(configuration: .ephemeral)
    _ = try await session.data(from: #require(URL(string: text)))
    #expect(second.requests.map { $0.fields["referer"] } == [nil])
    session.invalidateAndCancel()
  }

  /// The error's description, which people read, contains no secret. The URL is still in `userInfo`, since a program
  /// may need it.
  @Test("CVE-2023-0833: an error tells a secret")
  func errorsContainNoSecrets() async throws {
    server.route("GET", "/away") { _ in
      .init(status: 302, fields: ["Location": "gopher://user:secret@a.example/"])
    }
    let session = URLSession(configuration: .ephemeral)
    var field = URLRequest(url: try url("/get"))
    field.allHTTPHeaderFields = ["Authorization": "secret\r\nX: y"]
    for request in [field, URLRequest(url: try url("/away"))] {
      let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
      #expect(error?.localizedDescription.contains("secret") == false)
      #expect(error.map { "\($0)".contains("secret") } == false)
    }
    session.invalidateAndCancel()
  }
}
