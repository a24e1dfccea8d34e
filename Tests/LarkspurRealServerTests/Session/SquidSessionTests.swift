import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A session, squid, and the project's test servers behind it.
@Suite(.serialized, .ownThread) struct SquidSessionTests {
  private let authority: TestCA
  private let plain: TestServer
  private let secure: TestServer

  init() throws {
    authority = try TestCA()
    plain = try TestServer()
    secure = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
  }

  private func session(_ proxy: RealProxy, user: String? = nil, password: String? = nil) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    var dictionary: [AnyHashable: Any] = [
      "HTTPEnable": true, "HTTPProxy": "127.0.0.1", "HTTPPort": Int(proxy.port),
      "HTTPSEnable": true, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(proxy.port),
    ]
    if let user, let password {
      for prefix in ["HTTP", "HTTPS"] {
        dictionary[prefix + "User"] = user
        dictionary[prefix + "Password"] = password
      }
    }
    configuration.connectionProxyDictionary = dictionary
    return URLSession(configuration: configuration)
  }

  private func url(_ server: TestServer) throws -> URL {
    try #require(URL(string: server.url("/bytes/100", host: "localhost")))
  }

  /// Returns a delegate that trusts every server.
  private func recorder(_ passwords: String...) -> SessionRecorder {
    let trust: @Sendable (URLAuthenticationChallenge) -> URLCredential? = {
      $0.protectionSpace.serverTrust.map { URLCredential(trust: $0) }
    }
    return passwords.count == 2
      ? SessionRecorder(passwords[0], passwords[1], other: trust)
      : passwords.count == 1 ? SessionRecorder(passwords[0], other: trust) : SessionRecorder(other: trust)
  }

  private func seesNoPassword(_ server: TestServer) -> Bool {
    server.requests.allSatisfy { $0.fields["Proxy-Authorization"] == nil && $0.target == "/bytes/100" }
  }

  @Test func theDictionarysCredentials() async throws {
    let proxy = try RealProxy(.squid)
    let session = session(proxy, user: "me", password: "secret")
    let recorder = recorder()
    for server in [plain, secure] {
      for _ in 0..<3 {
        let loaded = try await session.load(url(server), delegate: recorder)
        #expect(loaded.status == 200)
        #expect(loaded.data == Data(TestServer.content(count: 100)))
      }
      #expect(seesNoPassword(server))
    }
    // One tunnel has served three requests. The number of squid's own connections for plain requests does not matter.
    #expect(secure.connectionsAccepted == 1)
    #expect(recorder.challenges.withLock { $0.allSatisfy { !$0.isProxy } })
    // squid adds this field.
    #expect(plain.requests.first?.fields["Via"]?.contains("squid") == true)
    #expect(secure.requests.first?.fields["Via"] == nil)
  }

  @Test func theDelegatesCredentials() async throws {
    for kind in [RealProxy.Kind.squid, .squidDigest] {
      let proxy = try RealProxy(kind)
      for server in [plain, secure] {
        let session = session(proxy)
        let recorder = recorder("wrong", "secret")
        let loaded = try await session.load(url(server), delegate: recorder)
        #expect(loaded.status == 200, "\(kind)")
        let asked = recorder.challenges.withLock { $0.filter(\.isProxy) }
        #expect(asked.map(\.failures) == [0, 1], "\(kind)")
        #expect(asked.allSatisfy { $0.realm == RealProxy.realm })
        let method = kind == .squid ? NSURLAuthenticationMethodHTTPBasic : NSURLAuthenticationMethodHTTPDigest
        #expect(asked.allSatisfy { $0.method == method })
        #expect(seesNoPassword(server))
      }
    }
  }

  @Test func missingCredentialsFail() async throws {
    let proxy = try RealProxy(.squid)
    #expect(try await session(proxy).load(url(plain)).status == 407)
    await #expect(throws: URLError.self) { try await session(proxy).load(url(secure), delegate: recorder()) }
    #expect(plain.requestsReceived + secure.requestsReceived == 0)
  }

  /// The session uses the proxy of the environment. In a process of its own, because the environment belongs to the
  /// process.
  @Test func theEnvironmentsProxy() throws {
    let proxy = try RealProxy(.squid)
    plain.route("GET", "/hello") {
      .text("via \($0.fields["Via"] ?? "nobody")")
    }
    let url = plain.url("/hello", host: "localhost")
    let through = try SiblingProcess(
      "session", ["get", url],
      environment: ["http_proxy": "http://me:secret@127.0.0.1:\(proxy.port)", "no_proxy": ""])
    let text = try through.text()
    #expect(text.hasPrefix("200 via ") && text.contains("squid"), "\(text)")
    let refused = try SiblingProcess(
      "session", ["get", url], environment: ["http_proxy": "http://127.0.0.1:\(proxy.port)", "no_proxy": ""])
    #expect(try refused.text().hasPrefix("407 "))
    let around = try SiblingProcess(
      "session", ["get", url],
      environment: ["http_proxy": "http://127.0.0.1:\(proxy.port)", "no_proxy": "localhost"])
    #expect(try around.text() == "200 via nobody\n")
  }
}
