import Foundation
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests when cookies set by responses are written to the file: repeated values must not cause repeated writes.
@Suite struct CookieBehindTests {
  /// A storage in a temporary directory that counts its writes.
  private final class Kept: Sendable {
    let directory: TemporaryDirectory
    let storage: HTTPCookieStorage
    private let counter: Counter

    private final class Counter: Sendable {
      private let count = Atomic(0)

      var value: Int { count.load(ordering: .relaxed) }

      func add() { count.add(1, ordering: .relaxed) }
    }

    init() throws {
      let (directory, counter) = (try TemporaryDirectory(), Counter())
      self.directory = directory
      self.counter = counter
      storage = HTTPCookieStorage(disk: CookieDisk(path: directory.url.path) { if $0 == .created { counter.add() } })
    }

    /// The number of times the file was written.
    var writes: Int { counter.value }

    func receive(_ fields: String..., after seconds: Double = 0) throws {
      let url = try #require(URL(string: "http://www.example.com/"))
      storage.store(
        setCookieFields: fields, from: url, mainDocument: nil, now: Date(timeIntervalSinceNow: seconds))
    }

    /// The cookies that another process would read from the file.
    var others: [HTTPCookie] { HTTPCookieStorage(disk: CookieDisk(path: directory.url.path)).cookies ?? [] }
  }

  @Test(arguments: ["", "; Max-Age=86400", "; Expires=Tue, 01 Jan 2047 00:00:00 GMT"])
  func aRepeatWritesNothing(attributes: String) throws {
    let kept = try Kept()
    try kept.receive("a=1\(attributes)")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    let writes = kept.writes
    #expect(writes == (attributes.isEmpty ? 0 : 1))
    for second in 1...50 {
      try kept.receive("a=1\(attributes)", after: Double(second))
      #expect(CookieDiskTests.write(kept.storage) == .done)
    }
    #expect(kept.writes == writes && kept.storage.cookies?.count == 1)
    try kept.receive("a=2\(attributes)")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(kept.writes == (attributes.isEmpty ? 0 : 2))
  }

  @Test func manyChangesAreOneWrite() throws {
    let kept = try Kept()
    for number in 0..<50 { try kept.receive("a=\(number); Max-Age=100", "b\(number)=1; Max-Age=100") }
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(kept.writes == 1 && kept.others.count == 51)
    #expect(kept.others.first { $0.name == "a" }?.value == "49")
  }

  /// A moved expiry applies in memory at once. It is written only when the expiry on disk would be wrong by too large a
  /// share of the remaining lifetime.
  @Test func movingExpiry() throws {
    let kept = try Kept()
    try kept.receive("a=1; Max-Age=1000")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    let first = try #require(kept.others.first?.expiresDate)
    try kept.receive("a=1; Max-Age=1000", after: 50)
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(kept.writes == 1 && kept.others.first?.expiresDate == first)
    #expect(try #require(kept.storage.cookies?.first?.expiresDate) > first + 40)
    try kept.receive("a=1; Max-Age=1000", after: 150)
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(kept.writes == 2)
    #expect(try #require(kept.others.first?.expiresDate) > first + 140)
  }

  /// A cookie that another process removed, and a server set again, returns to the file with the next write.
  @Test func setAgainAfterARemoval() throws {
    let kept = try Kept()
    try kept.receive("a=1; Max-Age=1000")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    let other = HTTPCookieStorage(disk: CookieDisk(path: kept.directory.url.path))
    for cookie in other.cookies ?? [] { other.deleteCookie(cookie) }
    #expect(CookieDiskTests.write(other) == .done)
    try kept.receive("a=1; Max-Age=1000", after: 10)
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(kept.others.isEmpty && kept.storage.cookies?.count == 1)
    try kept.receive("b=1; Max-Age=1000", after: 10)
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(Set(kept.others.map(\.name)) == ["a", "b"])
  }

  /// A write merges the file's cookies if another process wrote the file since, and does not read them otherwise.
  @Test func othersAreSeenWithAWrite() throws {
    let kept = try Kept()
    try kept.receive("a=1; Max-Age=1000")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    let other = HTTPCookieStorage(disk: CookieDisk(path: kept.directory.url.path))
    other.setCookie(try CookieDiskTests.cookie("theirs"))
    #expect(CookieDiskTests.write(other) == .done)
    try kept.receive("b=1; Max-Age=1000")
    #expect(CookieDiskTests.write(kept.storage) == .done)
    #expect(Set(CookieDiskTests.names(kept.storage)) == ["a=1", "b=1", "theirs=1"])
  }

  @Test(arguments: ["flush", "invalidate"]) func sessionsWriteAtTheirEnd(way: String) async throws {
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Set-Cookie": "a=1; Max-Age=1000"], body: .text("x"))
    }
    let kept = try Kept()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpCookieStorage = kept.storage
    let session = URLSession(configuration: configuration)
    _ = try await session.data(from: try #require(URL(string: server.url("/a"))))
    if way == "flush" { await session.flush() } else { session.finishTasksAndInvalidate() }
    await Wait.until("the cookie is written") { !kept.others.isEmpty }
    #expect(kept.others.map(\.name) == ["a"] && kept.writes == 1)
  }

  /// Observers are notified of each change and of nothing else.
  @Test func notifications() async throws {
    let kept = try Kept()
    let seen = Atomic(0)
    let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
    let token = NotificationCenter.default.addObserver(
      forName: .NSHTTPCookieManagerCookiesChanged, object: kept.storage, queue: nil
    ) { _ in
      seen.add(1, ordering: .relaxed)
      waiting.withLock { $0.take() }?.resume()
    }
    defer { NotificationCenter.default.removeObserver(token) }
    for value in 1...3 {
      await withCheckedContinuation { continuation in
        waiting.withLock { $0 = continuation }
        try? kept.receive("a=\(value)")
      }
      for _ in 0..<10 { try kept.receive("a=\(value)") }
      let isNotifying = kept.storage.isNotifying.load(ordering: .acquiring)
      #expect(!isNotifying)
    }
    let count = seen.load(ordering: .relaxed)
    #expect(count == 3)
  }
}
