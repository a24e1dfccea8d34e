import Foundation
import LarkspurHTTP
import LarkspurTestServer
import LarkspurTransfers
import TestKit
import Testing

@testable import Larkspur

/// Tests the cookies that travel with the records of background tasks.
@Suite(.timeLimit(.minutes(1))) struct TransferCookiesTests {
  private let directory: TemporaryDirectory
  private let url: URL

  init() throws {
    directory = try TemporaryDirectory()
    url = try #require(URL(string: "https://example.com/a"))
  }

  private func cookie(
    _ name: String, _ value: String, isPersistent: Bool = false, domain: String = "example.com"
  ) throws -> HTTPCookie {
    var properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: domain, .path: "/"]
    if isPersistent { properties[.expires] = Date(timeIntervalSinceNow: 1000) }
    return try #require(HTTPCookie(properties: properties))
  }

  private func storage(path: String?, _ cookies: [HTTPCookie]) -> HTTPCookieStorage {
    let storage = HTTPCookieStorage(disk: path.map { CookieDisk(path: $0) })
    for cookie in cookies { storage.setCookie(cookie) }
    return storage
  }

  private func restored(_ bytes: [UInt8]?, _ storage: HTTPCookieStorage = HTTPCookieStorage(disk: nil)) throws
    -> [String]
  {
    TransferCookies.restore(try #require(bytes), to: storage)
    return (storage.cookies ?? []).map { "\($0.name)=\($0.value) \($0.isSessionOnly)" }.sorted()
  }

  @Test func cookiesOfTheSessionTravelAndThoseOfTheFileDoNot() throws {
    let cookies = [
      try cookie("login", "1"), try cookie("lasting", "2", isPersistent: true),
      try cookie("other", "3", domain: "example.org"),
    ]
    let request = URLRequest(url: url)
    let inFile = TransferCookies.bytes(for: request, of: storage(path: directory.path("cookies"), cookies))
    #expect(try restored(inFile) == ["login=1 true"])
    let inMemory = TransferCookies.bytes(for: request, of: storage(path: nil, cookies))
    #expect(try restored(inMemory) == ["lasting=2 true", "login=1 true"])
    #expect(TransferCookies.bytes(for: request, of: storage(path: nil, [])) == nil)
  }

  private final class OwnStorage: HTTPCookieStorage, @unchecked Sendable {
    override func cookies(for URL: URL) -> [HTTPCookie]? {
      let properties: [HTTPCookiePropertyKey: Any] = [.name: "own", .value: "1", .domain: "example.com", .path: "/"]
      return HTTPCookie(properties: properties).map { [$0] }
    }
  }

  @Test func aStorageOfTheProgramsClassChooses() throws {
    let bytes = TransferCookies.bytes(for: URLRequest(url: url), of: OwnStorage())
    #expect(try restored(bytes) == ["own=1 true"])
    #expect(try restored(bytes, OwnStorage()) == [])
  }

  @Test func aLaterCookieStays() throws {
    let bytes = TransferCookies.bytes(for: URLRequest(url: url), of: storage(path: nil, [try cookie("login", "old")]))
    #expect(try restored(bytes, storage(path: nil, [try cookie("login", "new")])) == ["login=new true"])
  }

  @Test func theSizeIsLimited() throws {
    let value = String(repeating: "x", count: 4000)
    let cookies = try (0..<40).map { try cookie("name\($0)", value) }
    let bytes = try #require(TransferCookies.bytes(for: URLRequest(url: url), of: storage(path: nil, cookies)))
    #expect(bytes.count <= TransferCookies.bytesMax && bytes.count > TransferCookies.bytesMax - 5000)
    #expect(try restored(bytes).count == 15)
    #expect(try restored(Array("no cookies".utf8)) == [])
  }

  /// A login that ends with the session is not known to a transfer service but by the record.
  @Test func theRunnerSendsThem() async throws {
    let fixture = try BackgroundFixture()
    fixture.server.route("GET", "/file") { request in .text(request.fields["cookie"] ?? "none") }
    let url = try fixture.url("/file")
    let configuration = fixture.configuration()
    configuration.httpCookieStorage = storage(path: nil, [])
    let runner = try TransferRunner(
      TransferSession(identifier: "transfers", directory: directory.path("journal"), settings: []), configuration
    ) { _ in }
    var record = TransferRecord(
      task: 1, session: "transfers", kind: .download,
      request: try TransferRequest(URLRequest(url: url), isUpload: false),
      createdSeconds: Date().timeIntervalSince1970)
    record.state = .running
    let cookies = storage(path: nil, [try cookie("login", "1", domain: try #require(url.host))])
    record.cookies = TransferCookies.bytes(for: URLRequest(url: url), of: cookies)
    let isOver = TestServer.Signal()
    runner.start { notice in
      if case .changed(let record) = notice, record.state == .completed { isOver.fire() }
    }
    runner.send(.create(record))
    try await isOver.wait()
    #expect(try String(contentsOfFile: runner.contentPath(of: 1), encoding: .utf8) == "login=1")
    await withCheckedContinuation { continuation in runner.close { continuation.resume() } }
  }
}
