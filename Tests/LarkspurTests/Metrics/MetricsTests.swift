import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Tests the metrics of a task that the delegate receives.
@Suite(.timeLimit(.minutes(1))) struct MetricsTests {
  let server: TestServer
  let recorder = SessionRecorder()

  init() throws { server = try TestServer() }

  private func session(_ change: (URLSessionConfiguration) throws -> Void) rethrows -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    try change(configuration)
    return URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
  }

  /// Loads a URL and ignores a failure.
  ///
  /// - Returns: The task's metrics.
  private func load(_ text: String, with session: URLSession, body: Data? = nil) async throws -> URLSessionTaskMetrics {
    var request = URLRequest(url: try #require(URL(string: text)))
    request.httpBody = body
    if body != nil { request.httpMethod = "POST" }
    let before = recorder.metrics.count
    _ = try? await session.data(for: request)
    #expect(recorder.metrics.count == before + 1)
    let metrics = try #require(recorder.metrics.last)
    expectOrder(metrics)
    return metrics
  }

  private func dates(_ transaction: URLSessionTaskTransactionMetrics) -> [Date] {
    [
      transaction.fetchStartDate, transaction.domainLookupStartDate, transaction.domainLookupEndDate,
      transaction.connectStartDate, transaction.secureConnectionStartDate, transaction.secureConnectionEndDate,
      transaction.connectEndDate, transaction.requestStartDate, transaction.requestEndDate,
      transaction.responseStartDate, transaction.responseEndDate,
    ].compactMap { $0 }
  }

  private func expectOrder(_ metrics: URLSessionTaskMetrics) {
    let all = [metrics.taskInterval.start] + metrics.transactionMetrics.flatMap(dates) + [metrics.taskInterval.end]
    #expect(zip(all, all.dropFirst()).allSatisfy { $0 <= $1 }, "\(all.map(\.timeIntervalSinceReferenceDate))")
  }

  /// The task's interval begins at its creation, the fetch when the task is resumed.
  @Test func aTaskThatWaitsToBeResumed() async throws {
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let before = Date()
    let task = session.dataTask(with: try #require(URL(string: "data:,hello")))
    let made = Date()
    await Wait.until("time has passed") { Date() > made }
    task.resume()
    await recorder.waitForEnds()
    let metrics = try #require(recorder.metrics.first)
    #expect(before <= metrics.taskInterval.start && metrics.taskInterval.start <= made)
    #expect(try #require(metrics.transactionMetrics.first?.fetchStartDate) > made)
    session.invalidateAndCancel()
  }

  @Test func aLoadWithoutAServer() async throws {
    let metrics = try await load("data:,hello", with: session { _ in })
    let one = try #require(metrics.transactionMetrics.first)
    #expect(metrics.transactionMetrics.count == 1)
    #expect(one.request.url?.scheme == "data" && one.response?.expectedContentLength == 5)
    #expect(one.resourceFetchType == .unknown && one.networkProtocolName == nil)
  }

  private final class Refuser: NSObject, URLSessionDataDelegate {
    let metrics = AsyncStream<URLSessionTaskMetrics>.makeStream()

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(.cancel) }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
      self.metrics.continuation.yield(metrics)
    }
  }

  @Test func aRefusedResponse() async throws {
    let refuser = Refuser()
    let session = URLSession(configuration: .ephemeral, delegate: refuser, delegateQueue: nil)
    session.dataTask(with: try #require(URL(string: server.url("/bytes/1000")))).resume()
    let metrics = await refuser.metrics.stream.first { _ in true }
    let one = try #require(metrics?.transactionMetrics.first)
    #expect(one.countOfResponseHeaderBytesReceived > 0 && one.countOfResponseBodyBytesReceived >= 0)
    session.invalidateAndCancel()
  }

  @Test func aLoadAndAnother() async throws {
    let session = session { _ in }
    let first = try await load(server.url("/bytes/1000", host: "localhost"), with: session)
    let one = try #require(first.transactionMetrics.first)
    #expect(first.transactionMetrics.count == 1 && first.redirectCount == 0)
    #expect(dates(one).count == 9)
    #expect(one.secureConnectionStartDate == nil && !one.isReusedConnection && !one.isProxyConnection)
    #expect(one.resourceFetchType == .networkLoad && one.networkProtocolName == "http/1.1")
    #expect(one.remoteAddress == "127.0.0.1" && one.remotePort == "\(server.port)")
    #expect(one.localAddress == "127.0.0.1" && one.localPort != nil)
    #expect(one.countOfResponseBodyBytesReceived == 1000 && one.countOfResponseBodyBytesAfterDecoding == 1000)
    #expect(one.countOfRequestHeaderBytesSent > 0 && one.countOfResponseHeaderBytesReceived > 0)
    #expect(one.countOfRequestBodyBytesSent == 0 && one.countOfRequestBodyBytesBeforeEncoding == 0)
    #expect((one.response as? HTTPURLResponse)?.statusCode == 200)

    let second = try await load(server.url("/bytes/10", host: "localhost"), with: session)
    let other = try #require(second.transactionMetrics.first)
    #expect(other.isReusedConnection && other.connectStartDate == nil && other.domainLookupStartDate == nil)
    #expect(dates(other).count == 5 && other.localPort == one.localPort)
    session.invalidateAndCancel()
  }

  @Test func redirections() async throws {
    let session = session { _ in }
    let metrics = try await load(server.url("/redirect/3"), with: session)
    #expect(metrics.redirectCount == 3 && metrics.transactionMetrics.count == 4)
    #expect(metrics.transactionMetrics.map(\.isReusedConnection) == [false, true, true, true])
    let statuses = metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode }
    #expect(statuses == [302, 302, 302, 200])
    #expect(
      metrics.transactionMetrics.map(\.request.url?.path) == ["/redirect/3", "/redirect/2", "/redirect/1", "/get"])
    session.invalidateAndCancel()
  }

  @Test func whatIsSent() async throws {
    let session = session { _ in }
    let metrics = try await load(server.url("/post"), with: session, body: Data(count: 5_000))
    let one = try #require(metrics.transactionMetrics.first)
    #expect(one.countOfRequestBodyBytesSent == 5_000 && one.countOfRequestBodyBytesBeforeEncoding == 5_000)
    session.invalidateAndCancel()
  }

  @Test func contentCodings() async throws {
    let session = session { _ in }
    let metrics = try await load(server.url("/gzip"), with: session)
    let one = try #require(metrics.transactionMetrics.first)
    let sent = (one.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
    #expect(one.countOfResponseBodyBytesReceived == sent)
    #expect(one.countOfResponseBodyBytesAfterDecoding != one.countOfResponseBodyBytesReceived)
    session.invalidateAndCancel()
  }

  @Test func secureConnections() async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    let session = try session { configuration in
      configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(authority.rootCertificateDER)))])
    }
    let metrics = try await load(server.url("/get"), with: session)
    let one = try #require(metrics.transactionMetrics.first)
    #expect(one.secureConnectionStartDate != nil && one.secureConnectionEndDate != nil)
    #expect(one.connectEndDate == one.secureConnectionEndDate)
    #expect(one.negotiatedTLSProtocolVersion == .TLSv13)
    let suites: [tls_ciphersuite_t] = [.AES_128_GCM_SHA256, .AES_256_GCM_SHA384, .CHACHA20_POLY1305_SHA256]
    #expect(suites.contains(try #require(one.negotiatedTLSCipherSuite)))
    session.invalidateAndCancel()
  }

  @Test func fromTheCache() async throws {
    server.route("GET", "/kept") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("kept"))
    }
    let session = session { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0) }
    _ = try await load(server.url("/kept"), with: session)
    let metrics = try await load(server.url("/kept"), with: session)
    let one = try #require(metrics.transactionMetrics.last)
    #expect(one.resourceFetchType == .localCache && one.countOfResponseBodyBytesAfterDecoding == 4)
    #expect(one.remoteAddress == nil && one.countOfResponseBodyBytesReceived == 0)
    #expect(server.requestsReceived == 1)
    session.invalidateAndCancel()
  }

  @Test func throughAProxy() async throws {
    server.enqueue([.expectRequest, .respond(.text("from afar")), .close])
    let session = session { configuration in
      configuration.connectionProxyDictionary = [
        "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": server.port,
      ]
    }
    let metrics = try await load("http://a.example/x", with: session)
    let one = try #require(metrics.transactionMetrics.first)
    #expect(one.isProxyConnection && one.remotePort == "\(server.port)")
    #expect(server.requests.first?.target == "http://a.example/x")
    session.invalidateAndCancel()
  }

  @Test func whatFails() async throws {
    let session = session { _ in }
    server.enqueue([.expectRequest, .close])
    let metrics = try await load(server.url("/x"), with: session)
    let one = try #require(metrics.transactionMetrics.first)
    #expect(one.response == nil && one.requestStartDate != nil && one.responseEndDate == nil)
    // Port 1, which the kernel assigns to no test server.
    let other = try await load("http://127.0.0.1:1/", with: session)
    #expect(other.transactionMetrics.first?.requestStartDate == nil)
    #expect(other.transactionMetrics.first?.connectStartDate != nil)
    session.invalidateAndCancel()
  }

  /// A connection dialled for a cancelled task serves another one, whose metrics contain no earlier times.
  @Test func connectionsThatWereOpenedForOthers() async throws {
    let session = session { $0.httpMaximumConnectionsPerHost = 2 }
    for _ in 0..<50 {
      let cancelled = session.dataTask(with: try #require(URL(string: server.url("/get"))))
      cancelled.resume()
      cancelled.cancel()
      _ = try await session.data(from: try #require(URL(string: server.url("/bytes/10"))))
    }
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    for metrics in recorder.metrics { expectOrder(metrics) }
  }
}
