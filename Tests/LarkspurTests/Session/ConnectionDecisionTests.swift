import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// A connection that a task's delegate has decided about serves the tasks of this delegate only. For every other task
/// its own delegate is asked, or the default handling applies, whatever was decided earlier or at the same time.
@Suite(.timeLimit(.minutes(2))) struct ConnectionDecisionTests {
  /// The answer of a task's own delegate, if the task has one.
  enum Voice: CaseIterable {
    case absent
    /// A delegate without a method for challenges.
    case silent
    case trusting
    case refusing
    case standard
  }

  /// The answer of the session's delegate.
  enum SessionVoice: CaseIterable {
    case absent
    case silent
    case trustingConnections
    case refusingConnections
    case trustingTasks
  }

  enum Outcome: Equatable {
    case response
    case failure(URLError.Code)
  }

  private class Silent: NSObject, URLSessionDataDelegate, @unchecked Sendable {}

  private final class OfTask: NSObject, URLSessionDataDelegate {
    private let answer: @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)
    private let count = Mutex(0)
    var asked: Int { count.withLock { $0 } }

    init(
      _ answer:
        @escaping @Sendable (URLAuthenticationChallenge) -> (
          URLSession.AuthChallengeDisposition, URLCredential?
        )
    ) {
      self.answer = answer
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      count.withLock { $0 += 1 }
      let (disposition, credential) = answer(challenge)
      completionHandler(disposition, credential)
    }
  }

  private final class OfConnections: NSObject, URLSessionDelegate {
    let disposition: URLSession.AuthChallengeDisposition

    init(_ disposition: URLSession.AuthChallengeDisposition) { self.disposition = disposition }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      completionHandler(disposition, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
    }
  }

  private static func trusting(
    _ challenge: URLAuthenticationChallenge
  ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
    (.useCredential, challenge.protectionSpace.serverTrust.map { URLCredential(trust: $0) })
  }

  private static func delegate(_ voice: Voice) -> (any URLSessionTaskDelegate)? {
    switch voice {
    case .absent: nil
    case .silent: Silent()
    case .trusting: OfTask(trusting)
    case .refusing: OfTask { _ in (.cancelAuthenticationChallenge, nil) }
    case .standard: OfTask { _ in (.performDefaultHandling, nil) }
    }
  }

  private static func session(_ voice: SessionVoice) -> URLSession {
    let delegate: (any URLSessionDelegate)? =
      switch voice {
      case .absent: nil
      case .silent: Silent()
      case .trustingConnections: OfConnections(.useCredential)
      case .refusingConnections: OfConnections(.cancelAuthenticationChallenge)
      case .trustingTasks: OfTask(trusting)
      }
    return URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
  }

  private static func expected(_ voice: Voice, in session: SessionVoice) -> Outcome {
    switch (session, voice) {
    case (.trustingConnections, _): .response
    case (.refusingConnections, _): .failure(.cancelled)
    case (_, .trusting): .response
    case (_, .refusing): .failure(.cancelled)
    case (_, .standard): .failure(.serverCertificateUntrusted)
    case (.trustingTasks, .absent), (.trustingTasks, .silent): .response
    case (_, .absent), (_, .silent): .failure(.serverCertificateUntrusted)
    }
  }

  private static func outcome(
    of session: URLSession, _ url: URL, _ delegate: (any URLSessionTaskDelegate)?
  ) async -> Outcome {
    do {
      let (_, response) = try await session.data(from: url, delegate: delegate)
      return (response as? HTTPURLResponse)?.statusCode == 200 ? .response : .failure(.badServerResponse)
    } catch {
      return .failure((error as? URLError)?.code ?? .unknown)
    }
  }

  /// A server with a certificate of an authority that no client trusts.
  private static func server() throws -> TestServer {
    try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
  }

  @Test(arguments: SessionVoice.allCases, Voice.allCases)
  func aTaskThatComesLaterIsAskedItself(ofSession: SessionVoice, decided: Voice) async throws {
    let server = try Self.server()
    let url = try #require(URL(string: server.url("/get")))
    for comes in Voice.allCases {
      let session = Self.session(ofSession)
      let (first, second) = (Self.delegate(decided), Self.delegate(comes))
      #expect(await Self.outcome(of: session, url, first) == Self.expected(decided, in: ofSession))
      for _ in 0..<2 {
        #expect(await Self.outcome(of: session, url, second) == Self.expected(comes, in: ofSession), "\(comes)")
      }
      // For the first delegate again: its own connection serves the task, or the delegate is asked as before.
      #expect(await Self.outcome(of: session, url, first) == Self.expected(decided, in: ofSession))
      if ofSession != .trustingConnections, ofSession != .refusingConnections {
        for case let delegate? in [first as? OfTask, second as? OfTask] { #expect(delegate.asked > 0) }
      }
      session.invalidateAndCancel()
    }
  }

  @Test(arguments: SessionVoice.allCases, Voice.allCases)
  func tasksAtOnceAreAskedThemselves(ofSession: SessionVoice, one: Voice) async throws {
    let server = try Self.server()
    let url = try #require(URL(string: server.url("/get")))
    for other in Voice.allCases {
      let session = Self.session(ofSession)
      let delegates = (0..<2).map { _ in (Self.delegate(one), Self.delegate(other)) }
      await withTaskGroup(of: Void.self) { group in
        for (mine, others) in delegates {
          group.addTask {
            #expect(await Self.outcome(of: session, url, mine) == Self.expected(one, in: ofSession))
          }
          group.addTask {
            #expect(await Self.outcome(of: session, url, others) == Self.expected(other, in: ofSession), "\(other)")
          }
        }
      }
      session.invalidateAndCancel()
    }
  }

  @Test func theTasksOfOneDelegateShareAConnection() async throws {
    let server = try Self.server()
    let url = try #require(URL(string: server.url("/get")))
    let session = URLSession(configuration: .ephemeral)
    let delegate = Self.delegate(.trusting)
    for _ in 0..<3 { #expect(await Self.outcome(of: session, url, delegate) == .response) }
    #expect(server.connectionsAccepted == 1)
    session.invalidateAndCancel()
  }

  @Test func aSilentDelegatesTasksShareTheSessionsConnections() async throws {
    let ca = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    let url = try #require(URL(string: server.url("/get")))
    let session = URLSession(configuration: try Self.trusting(ca))
    // The first call shows that the class lacks the method.
    #expect(await Self.outcome(of: session, url, Silent()) == .response)
    #expect(await Self.outcome(of: session, url, nil) == .response)
    let connections = server.connectionsAccepted
    for _ in 0..<3 { #expect(await Self.outcome(of: session, url, Silent()) == .response) }
    #expect(server.connectionsAccepted == connections)
    session.invalidateAndCancel()
  }

  // MARK: - Identities

  private static func trusting(_ ca: TestCA) throws -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(ca.rootCertificateDER)))])
    return configuration
  }

  private static func person(_ name: String, _ ca: TestCA) throws -> OfTask {
    var request = TestCertificate.Request()
    request.commonName = name
    let certificate = try ca.issue(request)
    let identity = try ClientIdentity(
      certificates: Data(certificate.certificatePEM.utf8), key: Data(certificate.privateKeyPEM.utf8))
    return OfTask { challenge in
      guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
        return (.performDefaultHandling, nil)
      }
      return (.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
    }
  }

  /// The subject of the client certificate on the connection that served the response.
  private static func seen(
    by server: TestServer, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)?
  ) async throws -> String {
    let url = try #require(URL(string: server.url("/connection")))
    let (data, _) = try await session.data(from: url, delegate: delegate)
    let number = try #require(Int(String(decoding: data, as: UTF8.self)))
    let handshake = try #require(server.handshakes.first { $0.connection == number })
    return handshake.clientCertificateSubject.map { $0.contains("alice") ? "alice" : "bob" } ?? "none"
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], [false, true])
  func aServerSeesEachTasksOwnIdentity(version: TestServer.TLS.Version, atOnce: Bool) async throws {
    let ca = try TestCA()
    var settings = TestServer.TLS(certificate: try ca.issue())
    settings.clientCertificate = .asked
    settings.versions = version...version
    let server = try TestServer(tls: settings)
    server.route("GET", "/connection") { .text(String($0.connection)) }
    let people: [(String, (any URLSessionTaskDelegate)?)] = [
      ("alice", try Self.person("alice", ca)), ("bob", try Self.person("bob", ca)), ("none", nil),
      ("none", Silent()), ("none", Self.delegate(.standard)),
    ]
    let session = URLSession(configuration: try Self.trusting(ca))
    for _ in 0..<4 {
      if atOnce {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for (name, delegate) in people + people {
            group.addTask {
              let seen = try await Self.seen(by: server, session, delegate)
              #expect(seen == name)
            }
          }
          try await group.waitForAll()
        }
      } else {
        for (name, delegate) in people + people.reversed() {
          #expect(try await Self.seen(by: server, session, delegate) == name)
        }
      }
      // The next round has new connections, which may resume the TLS sessions of the old ones.
      await session.flush()
    }
    session.invalidateAndCancel()
  }

  // MARK: - Tunnels

  @Test func aTunnelServesTheTasksOfTheDelegateThatGaveTheCredential() async throws {
    let ca = try TestCA()
    let proxy = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    let ask = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"way\"\r\nContent-Length: 0\r\n\r\n"
    proxy.enqueue(
      [
        .beforeHandshake, .expectRequest("CONNECT", "localhost:443"), .send(ask),
        .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake, .serveRoutes,
      ], [.beforeHandshake, .expectRequest("CONNECT", "localhost:443"), .send(ask), .close])
    let configuration = try Self.trusting(ca)
    configuration.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port]
    let delegate = OfTask {
      $0.protectionSpace.isProxy()
        ? (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
        : (.performDefaultHandling, nil)
    }
    let session = URLSession(configuration: configuration)
    let url = try #require(URL(string: "https://localhost/get"))
    for _ in 0..<2 { #expect(await Self.outcome(of: session, url, delegate) == .response) }
    #expect(await Self.outcome(of: session, url, nil) != .response)
    #expect(
      proxy.requests.map { $0.fields["Proxy-Authorization"] } == [nil, "Basic dXNlcjpwYXNz", nil, nil, nil])
    session.invalidateAndCancel()
  }
}
