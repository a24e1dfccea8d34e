import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@Suite struct ChallengeTests {
  /// The disposition and credential with which a delegate answers a challenge.
  typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

  final class Delegate: NSObject, URLSessionDataDelegate {
    let asked = Mutex<[(method: String, failures: Int)]>([])
    let answer: @Sendable (URLAuthenticationChallenge) -> Answer

    init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Answer) { self.answer = answer }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      asked.withLock {
        $0.append((challenge.protectionSpace.authenticationMethod, challenge.previousFailureCount))
      }
      let (disposition, credential) = answer(challenge)
      completionHandler(disposition, credential)
    }
  }

  private func basicServer() throws -> TestServer {
    let server = try TestServer()
    server.route("GET", "/secret/{name}") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return TestServer.Response(
          status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""], body: .bytes(Array("who are you?".utf8)))
      }
      return .text("come in")
    }
    return server
  }

  /// A redirection served from the cache does not carry the credential to another origin either.
  @Test func aCredentialDoesNotGoAlongByTheCache() async throws {
    let (server, other) = (try TestServer(), try TestServer())
    other.route("GET", "/there") { _ in .text("there") }
    let there = other.url("/there")
    server.route("GET", "/here") { request in
      guard request.fields["authorization"] != nil else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return TestServer.Response(
        status: 301, fields: ["Location": there, "Cache-Control": "max-age=1000", "Vary": "Authorization"])
    }
    let delegate = Delegate {
      $0.protectionSpace.port == Int(server.port)
        ? (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
        : (.performDefaultHandling, nil)
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    let here = try #require(URL(string: server.url("/here")))
    for _ in 0..<2 {
      let session = URLSession(configuration: configuration)
      let (data, _) = try await session.data(from: here, delegate: delegate)
      #expect(String(decoding: data, as: UTF8.self) == "there")
      session.finishTasksAndInvalidate()
    }
    // In the second round the redirection comes from the cache.
    #expect(server.requests.map { $0.fields["authorization"] != nil } == [false, true, false])
    #expect(other.requests.allSatisfy { $0.fields["authorization"] == nil })
  }

  /// A response that only one user may read is served from the cache to the same credential again, and to no other.
  /// Digest makes a different `Authorization` field for each request, so the cache cannot compare the fields.
  @Test func aPrivateResponseIsServedToItsUserAgain() async throws {
    let server = try TestServer()
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"]?.hasPrefix("Digest ") == true else {
        return TestServer.Response(
          status: 401, fields: ["WWW-Authenticate": "Digest realm=\"here\", nonce=\"n\", qop=\"auth\", algorithm=MD5"])
      }
      return TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .bytes(Array("come in".utf8)))
    }
    let configuration = URLSessionConfiguration.ephemeral
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    configuration.urlCache = cache
    let url = try #require(URL(string: server.url("/secret")))
    var asked = 0
    for (password, isNew) in [("pass", true), ("pass", false), ("other", true), ("pass", false)] {
      let session = URLSession(configuration: configuration)
      let delegate = Delegate { _ in
        (.useCredential, URLCredential(user: "user", password: password, persistence: .forSession))
      }
      for _ in 0..<2 {
        let (data, _) = try await session.data(from: url, delegate: delegate)
        #expect(String(decoding: data, as: UTF8.self) == "come in")
      }
      asked += isNew ? 1 : 0
      #expect(server.requests.count { $0.fields["authorization"] != nil } == asked, "\(password)")
      session.finishTasksAndInvalidate()
    }
  }

  @Test func aCredentialIsAskedForAndThenSentUnasked() async throws {
    let server = try basicServer()
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    let delegate = Delegate { _ in (.useCredential, credential) }
    let session = URLSession(configuration: .ephemeral)
    let one = try #require(URL(string: server.url("/secret/one")))
    let (data, _) = try await session.data(from: one, delegate: delegate)
    #expect(String(decoding: data, as: UTF8.self) == "come in")
    #expect(server.requestsReceived == 2)
    let two = try #require(URL(string: server.url("/secret/two")))
    _ = try await session.data(from: two, delegate: delegate)
    #expect(server.requestsReceived == 3)
    #expect(delegate.asked.withLock { $0.count } == 1)
  }

  @Test func theStoragesDefaultIsUsedWithoutADelegate() async throws {
    let server = try basicServer()
    let configuration = URLSessionConfiguration.ephemeral
    let space = URLProtectionSpace(
      host: "127.0.0.1", port: Int(server.port), protocol: NSURLProtectionSpaceHTTP, realm: "here",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    configuration.urlCredentialStorage?.setDefaultCredential(
      URLCredential(user: "user", password: "pass", persistence: .forSession), for: space)
    let url = try #require(URL(string: server.url("/secret/one")))
    let (data, _) = try await URLSession(configuration: configuration).data(from: url)
    #expect(String(decoding: data, as: UTF8.self) == "come in")
  }

  /// The credential for a proxy's tunnel comes from the storage or from the delegate.
  @Test(arguments: [true, false]) func aTunnelsCredential(isStored: Bool) async throws {
    let ca = try TestCA()
    let proxy = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    let ask = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"way\"\r\nContent-Length: 0\r\n\r\n"
    proxy.enqueue([
      .beforeHandshake, .expectRequest("CONNECT", "localhost:443"), .send(ask),
      .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake, .serveRoutes,
    ])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(ca.rootCertificateDER)))])
    configuration.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port]
    let credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    let delegate = Delegate {
      $0.protectionSpace.isProxy() ? (.useCredential, credential) : (.performDefaultHandling, nil)
    }
    if isStored {
      configuration.urlCredentialStorage?.setDefaultCredential(
        credential,
        for: URLProtectionSpace(
          proxyHost: "127.0.0.1", port: Int(proxy.port), type: NSURLProtectionSpaceHTTPProxy, realm: "way",
          authenticationMethod: NSURLAuthenticationMethodHTTPBasic))
    }
    let session = URLSession(configuration: configuration, delegate: isStored ? nil : delegate, delegateQueue: nil)
    let (data, _) = try await session.data(from: try #require(URL(string: "https://localhost/bytes/9")))
    #expect(Array(data) == TestServer.content(count: 9))
    #expect(proxy.requests.map { $0.fields["Proxy-Authorization"] } == [nil, "Basic dXNlcjpwYXNz", nil])

    // The next tunnel sends the credential that the proxy has accepted, without a challenge.
    await session.flush()
    proxy.enqueue([
      .beforeHandshake, .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake,
      .serveRoutes,
    ])
    _ = try await session.data(from: try #require(URL(string: "https://localhost/bytes/9")))
    #expect(proxy.requests.suffix(2).map { $0.fields["Proxy-Authorization"] } == ["Basic dXNlcjpwYXNz", nil])
    #expect(delegate.asked.withLock { $0.filter { $0.method == NSURLAuthenticationMethodHTTPBasic }.count } < 2)
    session.invalidateAndCancel()
  }

  @Test func anUnanswered401IsTheResult() async throws {
    let server = try basicServer()
    let url = try #require(URL(string: server.url("/secret/one")))
    let (data, response) = try await URLSession(configuration: .ephemeral).data(from: url)
    #expect((response as? HTTPURLResponse)?.statusCode == 401)
    #expect(String(decoding: data, as: UTF8.self) == "who are you?")
  }

  @Test func cancellingAChallengeCancelsTheTask() async throws {
    let server = try basicServer()
    let url = try #require(URL(string: server.url("/secret/one")))
    let delegate = Delegate { _ in (.cancelAuthenticationChallenge, nil) }
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).data(from: url, delegate: delegate)
    }
    #expect(error?.code == .cancelled)
  }

  @Test func aServersCertificateIsTheDelegatesToJudge() async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    let url = try #require(URL(string: server.url("/get")))
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).data(from: url)
    }
    #expect(error?.code == .serverCertificateUntrusted)
    let delegate = Delegate { challenge in
      guard let trust = challenge.protectionSpace.serverTrust else { return (.cancelAuthenticationChallenge, nil) }
      return (.useCredential, URLCredential(trust: trust))
    }
    let (_, response) = try await URLSession(configuration: .ephemeral).data(from: url, delegate: delegate)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(delegate.asked.withLock { $0.map(\.method) } == [NSURLAuthenticationMethodServerTrust])
  }

  /// A connection refers to a task only while the task waits for it, since a task may hold much memory.
  @Test(.timeLimit(.minutes(1))) func aConnectionKeepsNoTaskThatIsOver() async throws {
    final class Seen: @unchecked Sendable { weak var task: URLSessionTask? }
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    let url = try #require(URL(string: server.url("/get")))
    let delegate = Delegate { challenge in
      guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
      return (.useCredential, URLCredential(trust: trust))
    }
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let seen = Seen()
    let failure: (any Error)? = await withCheckedContinuation { continuation in
      let task = session.dataTask(with: url) { _, _, error in continuation.resume(returning: error) }
      seen.task = task
      task.resume()
    }
    #expect(failure == nil && delegate.asked.withLock { $0.count } == 1)
    await Wait.until("the task is released") { seen.task == nil }
    session.invalidateAndCancel()
  }
}
