import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// The standard policy, with short delays, against real servers that fail.
@Suite(.serialized, .ownThread) struct RetryPeerTests {
  /// Counts the attempts of a session's loads.
  private final class Counter: URLSessionInterceptor {
    let count = Mutex(0)

    func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
      count.withLock { $0 += 1 }
      return request
    }
  }

  private let counter = Counter()

  private var attempts: Int { counter.count.withLock { $0 } }

  private func session(attemptsMax: Int = 3, firstDelay: Duration = .zero) -> URLSession {
    var policy = URLSession.RetryPolicy(budget: .init(reserve: 1_000))
    policy.rules.attemptsMax = attemptsMax
    policy.rules.firstDelay = firstDelay
    let configuration = URLSessionConfiguration.ephemeral
    configuration.interceptors = [counter, policy]
    return URLSession(configuration: configuration)
  }

  /// A server that limits the rate of requests gets each of them in the end.
  @Test(arguments: [429, 503]) func aLimitOfRequests(status: Int) async throws {
    let server = try SessionServer(
      .nginx, "limit_req zone=one; limit_req_status \(status);",
      http: "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;")
    let session = session(attemptsMax: 50, firstDelay: .milliseconds(50))
    defer { session.invalidateAndCancel() }
    let (url, count) = (try server.url("/small"), 2)
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<count { group.addTask { try await session.load(url).status } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == Array(repeating: 200, count: count) && attempts > count)
  }

  /// A server behind HAProxy that breaks connections is a 502, and one that is not there a 503.
  @Test func aServerBehindHAProxy() async throws {
    let origin = try TestServer()
    let proxy = try HAProxyServer(before: origin.port)
    origin.enqueue(
      [.expectRequest, .close], [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-"), .reset],
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close])
    let session = session()
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: "http://127.0.0.1:\(proxy.port)/bytes/9"))
    #expect(try await session.load(url).status == 200)
    // HAProxy may close its connection in place of a second 502: the transport then repeats the request by itself.
    let first = attempts
    #expect(2...3 ~= first && origin.requestsReceived == 3)

    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    origin.enqueue([.expectRequest, .close])
    let status = try? await session.load(request).status
    #expect(status == 502 || status == nil)
    #expect(attempts == first + 1 && origin.requestsReceived == 4)

    let deserted = try HAProxyServer(before: Int(try RealServer.freePort()))
    let other = try #require(URL(string: "http://127.0.0.1:\(deserted.port)/"))
    #expect(try await session.load(other).status == 503)
    #expect(attempts == first + 4)
  }

  @Test func aServerWithAScript() async throws {
    let server = try PythonServer("Tests/LivePeers/flaky_server.py")
    let session = session()
    defer { session.invalidateAndCancel() }
    func load(_ path: String, _ method: String = "GET") async throws -> (Int, String) {
      var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)\(path)")))
      request.httpMethod = method
      if method != "GET" { request.httpBody = Data("body".utf8) }
      let (status, data, _) = try await session.load(request)
      return (status, String(decoding: data, as: UTF8.self))
    }
    #expect(try await load("/429,503,200?after=0") == (200, "attempt 3"))
    #expect(try await load("/503,200?after=date0", "PUT") == (200, "attempt 2"))
    #expect(try await load("/500,502,504,200") == (504, "attempt 3"))
    // Methods that may have had an effect, long delays, and other status codes.
    #expect(try await load("/503,200", "POST") == (503, "attempt 1"))
    #expect(try await load("/429,200?after=3600") == (429, "attempt 1"))
    #expect(try await load("/503,200?after=date3600") == (503, "attempt 1"))
    #expect(try await load("/404,200") == (404, "attempt 1"))
  }

  /// A download of nginx's continues after its connection is cut.
  @Test func aDownloadContinues() async throws {
    let server = try SessionServer(.nginx, "")
    let relay = try PythonServer("Tests/LivePeers/flaky_server.py", ["relay", "\(server.port)", "50000"])
    let session = session()
    defer { session.invalidateAndCancel() }
    let recorder = MetricsRecorder()
    let url = try #require(URL(string: "http://127.0.0.1:\(relay.port)/100k"))
    let (file, _) = try await session.download(from: url, delegate: recorder)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Data(RealServer.hundredKiB))
    let responses = recorder.metrics.withLock { $0?.transactionMetrics.map { $0.response as? HTTPURLResponse } }
    #expect(responses?.map { $0?.statusCode } == [200, 206])
    #expect(responses?.last??.expectedContentLength ?? .max < RealServer.hundredKiB.count)
  }
}
