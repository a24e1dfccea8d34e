import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTestServer
import Testing

/// Tests requests that are sent with their own fields and no others.
@Suite struct ExactFormTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func request(
    _ method: String = "GET", _ path: String = "/anything", target: String? = nil,
    fields: FieldList = [], decodes: Bool = false
  ) throws -> URLRequest {
    URLRequest(
      exactly: method, try #require(URL(string: server.url(path))), target: target ?? path, fields: fields,
      decodes: decodes)
  }

  /// Loads a request.
  ///
  /// - Returns: The request that the server received last.
  private func load(
    _ request: URLRequest, _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) async throws -> TestServer.Request {
    let configuration = URLSessionConfiguration.ephemeral
    change(configuration)
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    _ = try await session.data(for: request)
    return try #require(server.requests.last)
  }

  private func names(_ request: TestServer.Request) -> [String] { request.fields.map(\.name) }

  @Test func noFields() async throws {
    let bare = try await load(try request())
    #expect(names(bare) == ["Host"])
    let configured = try await load(try request()) {
      $0.httpAdditionalHeaders = ["X-All": "1", "Host": "other.example", "Cookie": "a=1", "User-Agent": "x"]
    }
    #expect(names(configured) == ["Host"] && configured.fields["Host"] == server.authority)
  }

  /// Names keep their case, and fields of one name their lines. Framing fields follow from the body.
  @Test func fieldsAsGiven() async throws {
    let fields = [
      Field("x-ONE", "1"), Field("X-One", "2"), Field("host", ""),
      Field("Content-Length", "9"),
    ]
    let received = try await load(try request(fields: fields))
    #expect(names(received) == ["Host", "x-ONE", "X-One"])
    #expect(received.fields["Host"] == "" && received.fields.values("X-One") == ["1", "2"])
  }

  @Test(arguments: ["GET", "get", "POST"]) func methodsAndBodies(method: String) async throws {
    var request = try request(method)
    request.httpBody = Data("body".utf8)
    let received = try await load(request)
    #expect(received.method == method && received.bodyText == "body")
    #expect(names(received) == ["Host", "Content-Length"])
  }

  /// One session sends requests of both forms, with equal fields, over one route.
  @Test func besideOtherRequests() async throws {
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    var ordinary = try request()
    ordinary = URLRequest(url: try #require(ordinary.url))
    ordinary.setValue("1", forHTTPHeaderField: "X-One")
    let exact = try request(fields: [Field("X-One", "1")])
    for _ in 1...3 {
      for request in [ordinary, exact] { _ = try await session.data(for: request) }
    }
    #expect(server.requests.map { $0.fields["User-Agent"] != nil } == [true, false, true, false, true, false])
    #expect(server.requests.allSatisfy { $0.fields["X-One"] == "1" })
  }

  // MARK: - The target

  @Test func targetAsGiven() async throws {
    let target = "/anything/../a|b[]?c^d"
    server.defaultScript = [.expectRequest("GET", target), .send("HTTP/1.1 204 No Content\r\n\r\n"), .expectClose]
    #expect(try await load(try request(target: target)).target == target)
  }

  /// A copy with another URL has that URL's target.
  @Test func targetOfAnotherURL() async throws {
    var request = try request(target: "/elsewhere")
    request.url = URL(string: server.url("/anything?b"))
    let received = try await load(request)
    #expect(received.target == "/anything?b" && names(received) == ["Host"])
  }

  @Test func redirection() async throws {
    server.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": "/anything?new"]) }
    let received = try await load(try request("GET", "/moved", fields: [Field("X-One", "1")]))
    #expect(received.target == "/anything?new" && names(received) == ["Host", "X-One"])
  }

  /// A request that is bridged to `NSMutableURLRequest` and back keeps its form.
  @Test func bridging() async throws {
    let object = try #require((try request() as NSURLRequest).mutableCopy() as? NSMutableURLRequest)
    object.setValue("1", forHTTPHeaderField: "X-One")
    #expect(names(try await load(object as URLRequest)) == ["Host", "X-One"])
  }

  // MARK: - Content codings

  @Test func codings() async throws {
    let (session, path) = (URLSession(configuration: .ephemeral), "/gzip/1000")
    defer { session.invalidateAndCancel() }
    let (plain, _) = try await session.data(for: try request("GET", path))
    #expect(plain.starts(with: [0x1f, 0x8b]))
    let offer = [Field("Accept-Encoding", "gzip")]
    let (decoded, _) = try await session.data(for: try request("GET", path, fields: offer, decodes: true))
    #expect(decoded == Data(TestServer.content(count: 1000)))
  }

  // MARK: - Proxies

  /// The request's own credentials for a proxy replace those of the configuration.
  @Test func proxyAuthorization() async throws {
    server.defaultScript = [.serveRoutes]
    let port = server.port
    for own in [nil, "Digest y"] {
      let fields = own.map { [Field("Proxy-Authorization", $0)] } ?? []
      let url = try #require(URL(string: "http://a.invalid/anything"))
      let request = URLRequest(exactly: "GET", url, target: "/anything", fields: fields, decodes: false)
      let received = try await load(request) {
        $0.connectionProxyDictionary = [
          "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(port), "HTTPUser": "me", "HTTPPassword": "secret",
        ]
      }
      #expect(received.fields.values("Proxy-Authorization") == [own ?? "Basic bWU6c2VjcmV0"])
      #expect(received.target == "http://a.invalid/anything")
    }
  }
}
