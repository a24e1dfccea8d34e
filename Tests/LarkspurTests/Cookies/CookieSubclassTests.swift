import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests a program's own cookie storage: sessions call its methods that take a task.
@Suite struct CookieSubclassTests {
  private final class Elsewhere: HTTPCookieStorage, @unchecked Sendable {
    private let prefix: String
    private let kept = Mutex<[HTTPCookie]>([])

    init(prefix: String) {
      self.prefix = prefix
      super.init()
    }

    var names: [String] { kept.withLock { $0.map(\.name) } }

    override func getCookiesFor(
      _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
    ) {
      completionHandler(kept.withLock { $0 })
    }

    override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
      kept.withLock { $0 += cookies.filter { $0.name.hasPrefix(prefix) } }
    }
  }

  /// A storage that filters cookies and then stores them with the inherited method.
  private final class Screening: HTTPCookieStorage, @unchecked Sendable {
    override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
      super.storeCookies(cookies.filter { $0.name != "spy" }, for: task)
    }
  }

  /// A storage that overrides `cookies(for:)`.
  private final class Choosing: HTTPCookieStorage, @unchecked Sendable {
    override func cookies(for url: URL) -> [HTTPCookie]? {
      let own = HTTPCookie(properties: [.name: "own", .value: "3", .domain: url.host ?? "", .path: "/"])
      return (super.cookies(for: url) ?? []).filter { $0.name != "spy" } + [own].compactMap(\.self)
    }
  }

  @Test func oneThatChoosesByURL() async throws {
    #expect(try await secondRequest(with: Choosing())?.fields["cookie"] == "good=1; own=3")
  }

  private static let answer =
    "HTTP/1.1 200 OK\r\nSet-Cookie: good=1; Expires=Fri, 31 Dec 2100 23:59:59 GMT\r\nSet-Cookie: spy=2\r\n"
    + "Content-Length: 0\r\n\r\n"

  private func secondRequest(with storage: HTTPCookieStorage) async throws -> TestServer.Request? {
    let server = try TestServer()
    server.enqueue([
      .expectRequest, .send(Self.answer), .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = storage
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/")))
    _ = try await session.data(from: url)
    _ = try await session.data(from: url)
    return try await server.waitForRequests(2).last
  }

  /// The session's accept policy also applies to a storage subclass.
  @Test func othersSitesCookies() async throws {
    let server = try TestServer()
    server.route("GET", "/set") { _ in .init(fields: ["Set-Cookie": "good=1"]) }
    let storage = Elsewhere(prefix: "g")
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = storage
    configuration.httpCookieAcceptPolicy = .onlyFromMainDocumentDomain
    var request = URLRequest(url: try #require(URL(string: server.url("/set"))))
    request.mainDocumentURL = URL(string: "http://other.example/")
    let session = URLSession(configuration: configuration)
    _ = try await session.data(for: request)
    #expect(storage.names == [])
    request.mainDocumentURL = request.url
    _ = try await session.data(for: request)
    #expect(storage.names == ["good"])
    session.invalidateAndCancel()
  }

  @Test func aStorageOfItsOwn() async throws {
    let storage = Elsewhere(prefix: "g")
    let request = try await secondRequest(with: storage)
    #expect(request?.fields["Cookie"] == "good=1")
    #expect(storage.names == ["good"])
    #expect(storage.cookies == [])
  }

  @Test func aStorageThatScreens() async throws {
    let storage = Screening()
    let request = try await secondRequest(with: storage)
    #expect(request?.fields["Cookie"] == "good=1")
    #expect(storage.cookies?.map(\.name) == ["good"])
  }

  private final class Plain: HTTPCookieStorage, @unchecked Sendable {}

  /// A subclass that overrides nothing accepts the same cookies as the base class.
  @Test func theSameRules() async throws {
    let fields = [
      "comma=y, a=b", "nopath=1", "secure=1; Secure", "__Host-x=1", "none=1; SameSite=None",
      "long=1; Max-Age=999999999",
      "gone=1; Max-Age=0", "other=1; Domain=other.example",
    ]
    var kept: [[HTTPCookie]] = []
    for storage in [URLSessionConfiguration.ephemeral.httpCookieStorage, Plain()] {
      let server = try TestServer()
      server.route("GET", "/a/b/c") { _ in
        TestServer.Response(fields: TestServer.Fields(fields.map { TestServer.Field("Set-Cookie", $0) }))
      }
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpCookieStorage = storage
      let session = URLSession(configuration: configuration)
      defer { session.invalidateAndCancel() }
      _ = try await session.data(from: try #require(URL(string: server.url("/a/b/c"))))
      kept.append(storage?.cookies ?? [])
    }
    #expect(kept[0].map(\.name) == ["comma", "nopath", "long"] && kept[1].map(\.name) == kept[0].map(\.name))
    #expect(kept[1].map(\.value) == kept[0].map(\.value) && kept[1].map(\.path) == kept[0].map(\.path))
    let ends = kept.map { $0.last?.expiresDate?.timeIntervalSinceNow ?? 0 }
    #expect(abs(ends[0] - ends[1]) < 600)
  }
}
