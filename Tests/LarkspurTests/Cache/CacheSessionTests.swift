import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Runs the conformance suite of HTTP caches through a session: the origin is a server on a socket, the client is
/// `URLSession.data(for:)`. Cache and server read one simulated clock, which a pause advances.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct CacheSessionTests {
  /// The required tests that fail, each with its reason.
  static let deviations = [
    // The end of a message with an unknown transfer coding cannot be determined (RFC 9112 6.1), so the client refuses
    // the response. `PlayedTask`, which has no connection, passes this test.
    "headers-store-Transfer-Encoding": "the response is refused"
  ]

  @Test func requiredTestsPass() async throws {
    var lines: [CacheSuiteTests.Line] = []
    let server = try CacheSuiteServer()
    for test in try CacheSuite.all().flatMap(\.tests) where test.isForPrivateCaches {
      var client = SessionClient(server, test)
      lines.append(.init(test: test, outcome: await CacheSuiteRunner(test: test, id: client.id).run(&client)))
      client.end()
    }
    let (required, passed) = CacheSuiteTests.report(lines, title: "through a session")
    #expect(required > 100)
    for line in lines where line.test.isRequired {
      if line.outcome == .pass {
        #expect(Self.deviations[line.test.id] == nil, "\(line.test.id) passes: take it off the list")
      } else {
        #expect(Self.deviations[line.test.id] != nil, "\(line.test.id): \(line.outcome)")
      }
    }
    #expect(Double(passed) >= 0.95 * Double(required))
    #expect(server.server.failures.isEmpty)
  }
}

/// A clock that only `advance(seconds:)` moves.
final class HandClock: Sendable {
  private let time: Mutex<Date>

  init(_ time: Date = Date(timeIntervalSince1970: 1_800_000_000.25)) { self.time = Mutex(time) }

  var now: Date { time.withLock { $0 } }

  func advance(seconds: Double) { time.withLock { $0 += seconds } }
}

extension URLCache {
  /// Creates a cache without a disk that reads the time from `clock`.
  static func inMemory(_ clock: HandClock, capacity: Int = 4 << 20) -> URLCache {
    let nowhere = CacheDisk(isInUse: true) { (_) throws(Errno) in throw .noSuchFile }
    return URLCache(
      core: CacheCore(memoryCapacity: capacity, diskCapacity: 0, disk: nowhere, now: { clock.now }))
  }
}

/// The suite's origin behind a socket, with one path below `/test` for each test.
final class CacheSuiteServer: Sendable {
  let server: TestServer
  let clock: HandClock
  private let origins: Origins

  private final class Origins: Sendable {
    let all = Mutex<[String: CacheSuiteOrigin]>([:])

    func answer(_ request: TestServer.Request, now: Date) -> TestServer.Response {
      let fields = request.fields.map { Field($0.name, $0.value) }
      let answer = all.withLock {
        $0[request.parameters["id"] ?? ""]?.answer(
          method: request.method, path: request.target, fields: fields, now: now.timeIntervalSince1970)
      }
      guard let answer else { return TestServer.Response(status: 500) }
      return TestServer.Response(
        status: answer.status, fields: .init(answer.fields.map { .init($0.name, $0.value) }),
        body: .bytes([UInt8](answer.body)))
    }
  }

  init() throws {
    let (server, clock, origins) = (try TestServer(), HandClock(), Origins())
    (self.server, self.clock, self.origins) = (server, clock, origins)
    server.route("*", "/test/{id}") { origins.answer($0, now: clock.now) }
    server.route("*", "/test/{id}/*") { origins.answer($0, now: clock.now) }
  }

  func add(_ origin: CacheSuiteOrigin) { origins.all.withLock { $0[origin.id] = origin } }

  func seen(_ id: String) -> [CacheSuiteOrigin.Seen] { origins.all.withLock { $0[id]?.seen ?? [] } }

  /// Resets the connections of a test from now on, in place of an answer.
  func cut(_ id: String) { server.route("*", "/test/\(id)", script: [.reset]) }
}

/// A session with its own cache.
struct SessionClient: CacheSuiteClient {
  /// Refuses redirections: the suite checks the redirection responses themselves.
  private final class Delegate: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      completionHandler(nil)
    }
  }

  let id = UUID().uuidString.lowercased()
  private let test: CacheSuite.Test
  private let server: CacheSuiteServer
  private let session: URLSession
  private let cache: URLCache
  private let delegate = Delegate()

  init(_ server: CacheSuiteServer, _ test: CacheSuite.Test) {
    (self.server, self.test) = (server, test)
    server.add(CacheSuiteOrigin(id: id, requests: test.requests))
    cache = .inMemory(server.clock)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    session = URLSession(configuration: configuration)
  }

  func end() { session.invalidateAndCancel() }

  func pause(seconds: Int) { server.clock.advance(seconds: Double(seconds)) }

  func seen() -> [CacheSuiteOrigin.Seen] { server.seen(id) }

  func fetch(
    method: String, path: String, fields: FieldList, body: String?, mode: String?
  ) async throws -> CacheSuiteResponse {
    let number = fields.firstValue(named: "Req-Num").flatMap(Int.init) ?? 0
    if test.requests.indices.contains(number - 1), test.requests[number - 1].disconnect == true { server.cut(id) }
    var request = URLRequest(url: try #require(URL(string: server.server.url(path))))
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    for field in fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
    if let policy = mode.flatMap({ PlayedTask.policies[$0] }) { request.cachePolicy = policy }
    let (data, response) = try await session.data(for: request, delegate: delegate)
    // Waits for background revalidations and writes before the clock advances.
    await Wait.until("no task runs") { await session.allTasks.isEmpty }
    cache.core.settle()
    let http = try #require(response as? HTTPURLResponse)
    return CacheSuiteResponse(
      status: http.statusCode, fields: http.fields.list, body: String(decoding: data, as: UTF8.self))
  }
}
