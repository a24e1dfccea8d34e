import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests what a session passes on to its collaborators: the request's settings, the task, the cause of a failure.
@Suite(.timeLimit(.minutes(1))) struct SessionConformanceTests {
  private let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  /// A storage that records the tasks that it is asked for.
  private final class ByTask: URLCredentialStorage, @unchecked Sendable {
    let tasks = Mutex<[Int]>([])

    override func getDefaultCredential(
      for space: URLProtectionSpace, task: URLSessionTask, completionHandler: (URLCredential?) -> Void
    ) {
      tasks.withLock { $0.append(task.taskIdentifier) }
      completionHandler(URLCredential(user: "user", password: "pass", persistence: .forSession))
    }
  }

  @Test func aStorageIsAskedForATask() async throws {
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return .text("come in")
    }
    let configuration = URLSessionConfiguration.ephemeral
    let storage = ByTask()
    configuration.urlCredentialStorage = storage
    let (data, _) = try await URLSession(configuration: configuration).data(from: url("/secret"))
    #expect(String(decoding: data, as: UTF8.self) == "come in")
    #expect(storage.tasks.withLock { $0 } == [1])
  }

  /// A request can ask for pipelining, as its configuration can. The server answers only after it has both requests.
  @Test(arguments: [true, false]) func aRequestMayAskForPipelining(isConfigurations: Bool) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    configuration.httpShouldUsePipelining = isConfigurations
    let session = URLSession(configuration: configuration)
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    server.enqueue([
      .expectRequest, .send(answer), .expectRequest, .expectRequest, .send(answer), .send(answer), .hang,
    ])
    // Only a connection that has been kept alive once is used for pipelining.
    _ = try await session.data(from: url("/get"))
    let request = try {
      var request = URLRequest(url: try url("/get"))
      request.httpShouldUsePipelining = !isConfigurations
      return request
    }()
    async let one = session.data(for: request)
    async let other = session.data(for: request)
    for (_, response) in try await [one, other] { #expect((response as? HTTPURLResponse)?.statusCode == 200) }
    #expect(server.connectionsAccepted == 1)
  }

  /// A request for a part of another site's document neither sends nor stores `SameSite` cookies.
  @Test(arguments: ["Strict", "Lax"]) func cookiesOfPartsOfOthersDocuments(kind: String) async throws {
    server.route("GET", "/set") { _ in TestServer.Response(fields: ["Set-Cookie": "a=b; SameSite=\(kind)"]) }
    let configuration = URLSessionConfiguration.ephemeral
    let session = URLSession(configuration: configuration)
    var request = URLRequest(url: try url("/set"))
    request.mainDocumentURL = URL(string: "http://other.example/")
    _ = try await session.data(for: request)
    #expect(configuration.httpCookieStorage?.cookies?.isEmpty == true)
    request.mainDocumentURL = nil
    _ = try await session.data(for: request)
    #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["a"])
    request.mainDocumentURL = URL(string: "http://other.example/")
    _ = try await session.data(for: request)
    #expect(server.requests.last?.fields["cookie"] == nil)
  }

  /// The underlying error is the one of the connection to the proxy.
  @Test func aProxyThatIsNotThere() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [
      "HTTPEnable": true, "HTTPProxy": "127.0.0.1", "HTTPPort": 1,
    ]
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: configuration).data(from: url("/get"))
    }
    #expect(error?.code == .cannotConnectToHost)
    let cause = error?.userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(cause?.domain == NSPOSIXErrorDomain && cause?.code == 111)
    #expect(error?.userInfo["LarkspurPeerAddress"] as? String == "127.0.0.1:1")
    #expect(error?.userInfo["_kCFStreamErrorCodeKey"] as? Int == 111)
  }

  /// An error names the address of the peer, so that its reader knows which of a host's servers failed.
  @Test func errorsNameThePeer() async throws {
    let secure = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
    let cases: [(TestServer, TestServer.Script, URLError.Code)] = [
      (server, [.expectRequest, .reset], .networkConnectionLost),
      (server, [.expectRequest, .close], .networkConnectionLost),
      (server, [.expectRequest, .send(answer), .reset], .networkConnectionLost),
      (server, [.expectRequest, .send(answer + "x"), .close], .networkConnectionLost),
      (server, [.expectRequest, .send("nonsense\r\n\r\n"), .close], .cannotParseResponse),
      (server, [.expectRequest, .hang], .timedOut),
      (secure, [.handshake], .serverCertificateUntrusted),
      (secure, [.beforeHandshake, .expectBytes(count: 1), .reset], .networkConnectionLost),
      (secure, [.beforeHandshake, .hang], .timedOut),
    ]
    for (server, script, code) in cases {
      server.enqueue(script)
      let session = URLSession(configuration: .ephemeral)
      let url = try #require(URL(string: server.url("/").replacing("localhost", with: "127.0.0.1")))
      // A timeout of 3 s is longer than a busy machine takes to connect.
      let request = URLRequest(url: url, timeoutInterval: code == .timedOut ? 3 : 60)
      let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
      #expect(error?.code == code)
      #expect(error?.userInfo["LarkspurPeerAddress"] as? String == "127.0.0.1:\(server.port)", "\(code)")
      session.invalidateAndCancel()
    }
  }

  /// A `Cookie` field that the program sets overrides the stored cookies, as Apple documents.
  @Test func theRequestsOwnCookies() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    let session = URLSession(configuration: configuration)
    server.route("GET", "/set") { _ in TestServer.Response(fields: ["Set-Cookie": "stored=1"]) }
    let url = try #require(URL(string: server.url("/set")))
    _ = try await session.data(from: url)
    var request = URLRequest(url: url)
    request.setValue("own=1", forHTTPHeaderField: "cookie")
    _ = try await session.data(for: request)
    #expect(server.requests.last?.fields["Cookie"] == "own=1")
    // After a redirection the stored cookies apply, since the redirection may have set new ones.
    server.route("GET", "/login") { _ in
      TestServer.Response(status: 302, fields: ["Location": "/set", "Set-Cookie": "stored=1"])
    }
    request.url = URL(string: server.url("/login"))
    _ = try await session.data(for: request)
    #expect(server.requests.last?.fields["Cookie"] == "stored=1")
    _ = try await session.data(from: url)
    #expect(server.requests.last?.fields["Cookie"] == "stored=1")
  }

  private final class PuttingDelegate: NSObject, URLSessionTaskDelegate {
    let sent = Mutex<[Int64]>([])
    let task = Mutex<URLSessionTask?>(nil)

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { self.task.withLock { $0 = task } }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      var request = request
      request.httpMethod = "PUT"
      request.httpBody = Data(count: 100)
      completionHandler(request)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) { sent.withLock { $0 = [bytesSent, totalBytesSent, totalBytesExpectedToSend] } }
  }

  /// The counts of sent bytes cover the body that the delegate put into the redirected request.
  @Test(arguments: ["GET", "POST"]) func aBodyOfTheDelegates(method: String) async throws {
    let delegate = PuttingDelegate()
    let session = URLSession(configuration: .ephemeral)
    server.route(method, "/moved") { _ in TestServer.Response(status: 307, fields: ["Location": "/put"]) }
    server.route("PUT", "/put") { _ in .text("done") }
    var request = URLRequest(url: try #require(URL(string: server.url("/moved"))))
    request.httpMethod = method
    if method == "POST" { request.httpBody = Data(count: 7) }
    _ = try await session.data(for: request, delegate: delegate)
    let task = try #require(delegate.task.withLock { $0 })
    #expect(task.countOfBytesSent == 100 && task.countOfBytesExpectedToSend == 100)
    #expect(delegate.sent.withLock { $0 } == [100, 100, 100])
  }

  /// If a task's own delegate lacks a method, the session's delegate gets the call.
  @Test func progressThatTheTasksDelegateDoesNotHear() async throws {
    final class Deaf: NSObject, URLSessionTaskDelegate {}
    let delegate = PuttingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    server.route("POST", "/sent") { _ in .text("done") }
    var request = URLRequest(url: try #require(URL(string: server.url("/sent"))))
    request.httpMethod = "POST"
    _ = try await session.upload(for: request, from: Data(count: 100), delegate: Deaf())
    #expect(delegate.sent.withLock { $0 } == [100, 100, 100])
    session.invalidateAndCancel()
  }
}
