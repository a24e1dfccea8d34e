import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests plain HTTP through a forwarding proxy, whose connections serve requests to all origins.
@Suite struct ForwardingProxyTests {
  let proxy: TestServer

  init() throws { proxy = try TestServer() }

  private func session(_ change: (URLSessionConfiguration) -> Void = { _ in }) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [
      "HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": proxy.port,
    ]
    change(configuration)
    return URLSession(configuration: configuration)
  }

  /// A script that answers `count` requests on one connection.
  private func answers(_ count: Int) -> TestServer.Script {
    TestServer.Script(
      (0..<count).flatMap { _ -> [TestServer.Step] in [.expectRequest, .respond(.text("from afar"))] } + [.hang])
  }

  private static let targets = [
    "http://a.example/1", "http://b.example/2", "http://a.example:8080/3", "http://[2001:db8::1]/4",
    "http://a.example/5",
  ]

  @Test(arguments: [false, true]) func originsShareAConnection(isWatched: Bool) async throws {
    proxy.enqueue(answers(Self.targets.count))
    let session = session()
    for target in Self.targets {
      let url = try #require(URL(string: target))
      let delegate = isWatched ? UploadRecorder { nil } : nil
      let (data, _) = try await session.data(for: URLRequest(url: url), delegate: delegate)
      #expect(data == Data("from afar".utf8))
    }
    #expect(proxy.requests.map(\.target) == Self.targets)
    #expect(
      proxy.requests.map { $0.fields["Host"] }
        == ["a.example", "b.example", "a.example:8080", "[2001:db8::1]", "a.example"])
    #expect(proxy.requests.map(\.connection) == [1, 1, 1, 1, 1])
    session.invalidateAndCancel()
  }

  /// `httpMaximumConnectionsPerHost` limits the connections to the proxy, not to the origins.
  @Test func theLimitCountsForTheProxy() async throws {
    proxy.enqueue(answers(Self.targets.count))
    let session = session { $0.httpMaximumConnectionsPerHost = 1 }
    try await withThrowingTaskGroup(of: Data.self) { group in
      for target in Self.targets {
        let url = try #require(URL(string: target))
        group.addTask { try await session.data(from: url).0 }
      }
      for try await data in group { #expect(data == Data("from afar".utf8)) }
    }
    #expect(Set(proxy.requests.map(\.target)) == Set(Self.targets))
    #expect(proxy.requests.map(\.connection) == [1, 1, 1, 1, 1])
    session.invalidateAndCancel()
  }

  /// Credentials of one origin are not sent to another over the shared connection, and each request carries the proxy's
  /// own credentials.
  @Test func credentialsStayWithTheirOrigins() async throws {
    proxy.enqueue(answers(3))
    let session = session {
      $0.httpAdditionalHeaders = ["Proxy-Authorization": "Basic cHJveHk6d29yZA=="]
    }
    for target in ["http://user:word@a.example/1", "http://b.example/2", "http://a.example/3"] {
      var request = URLRequest(url: try #require(URL(string: target)))
      if target.contains("user") { request.setValue("Basic dXNlcjp3b3Jk", forHTTPHeaderField: "Authorization") }
      _ = try await session.data(for: request)
    }
    #expect(proxy.requests.map { $0.fields["Authorization"] } == ["Basic dXNlcjp3b3Jk", nil, nil])
    #expect(
      proxy.requests.map { $0.fields["Proxy-Authorization"] }
        == Array(repeating: "Basic cHJveHk6d29yZA==", count: 3))
    #expect(proxy.requests.map(\.connection) == [1, 1, 1])
    session.invalidateAndCancel()
  }

  /// Requests through a proxy are not pipelined, even if the program asks for pipelining: bytes that an origin sends
  /// after its response would be taken for another origin's response. Here the requests wait for each other, and every
  /// response is followed by an extra one.
  @Test(arguments: [true, false]) func unrequestedAnswers(isConfigurations: Bool) async throws {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
    let lures = (0..<2).map { _ in
      [TestServer.Step.expectRequest, .send(answer + "1" + answer + "2"), .expectClose] as TestServer.Script
    }
    proxy.enqueue([
      .expectRequest, .send(answer + "0"), .expectRequest, .send(answer + "1" + answer + "2"), .expectClose,
    ])
    for lure in lures { proxy.enqueue(lure) }
    let session = session {
      $0.httpMaximumConnectionsPerHost = 1
      $0.httpShouldUsePipelining = isConfigurations
    }
    // Pipelining would need a connection that has been kept alive once.
    _ = try await session.data(from: #require(URL(string: "http://a.example/")))
    try await withThrowingTaskGroup(of: Data.self) { group in
      for host in ["a", "b", "c"] {
        var request = URLRequest(url: try #require(URL(string: "http://\(host).example/")))
        request.httpShouldUsePipelining = !isConfigurations
        let one = request
        group.addTask { try await session.data(for: one).0 }
      }
      for try await data in group { #expect(data == Data("1".utf8)) }
    }
    #expect(proxy.connectionsAccepted == 3)
    session.invalidateAndCancel()
  }

  /// RFC 9112 6.1: the proxy's HTTP version decides whether a chunked body can be sent, since the proxy parses the
  /// framing.
  @Test func theProxysVersionCounts() async throws {
    proxy.enqueue([.expectRequest, .send("HTTP/1.0 204 X\r\n\r\n"), .close], answers(1))
    let session = session()
    _ = try await session.data(from: #require(URL(string: "http://a.example/")))
    var request = URLRequest(url: try #require(URL(string: "http://b.example/")))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    let post = request
    let error = await #expect(throws: URLError.self) { try await session.data(for: post) }
    #expect(error?.code == .requestBodyStreamExhausted)
    #expect(proxy.requestsReceived == 1)
    session.invalidateAndCancel()
  }
}
