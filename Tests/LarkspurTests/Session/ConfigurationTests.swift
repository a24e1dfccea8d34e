import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests the settings of a configuration for its session's connections, and the stores that belong to one
/// configuration.
@Suite(.timeLimit(.minutes(1))) struct ConfigurationTests {
  typealias Version = TestServer.TLS.Version

  /// Loads from a server that offers the TLS versions `served`.
  ///
  /// - Returns: The negotiated version, or `nil` if the handshake failed.
  private func negotiated(
    _ served: ClosedRange<Version>, _ change: (URLSessionConfiguration) -> Void
  ) async throws -> tls_protocol_version_t? {
    let authority = try TestCA()
    var tls = TestServer.TLS(certificate: try authority.issue())
    tls.versions = served
    let server = try TestServer(tls: tls)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(authority.rootCertificateDER)))])
    change(configuration)
    let recorder = SessionRecorder()
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/get"))))
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    guard let error = task.error else {
      return recorder.metrics.first?.transactionMetrics.first?.negotiatedTLSProtocolVersion
    }
    #expect((error as? URLError)?.code == .secureConnectionFailed)
    return nil
  }

  @Test func versionsOfTLS() async throws {
    #expect(try await negotiated(.tls1_2 ... .tls1_3) { _ in } == .TLSv13)
    #expect(try await negotiated(.tls1_2 ... .tls1_2) { _ in } == .TLSv12)
    let notBelow = { (configuration: URLSessionConfiguration) in
      configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
    }
    #expect(try await negotiated(.tls1_2 ... .tls1_3, notBelow) == .TLSv13)
    #expect(try await negotiated(.tls1_2 ... .tls1_2, notBelow) == nil)
    let notAbove = { (configuration: URLSessionConfiguration) in
      configuration.tlsMaximumSupportedProtocolVersion = .TLSv12
    }
    #expect(try await negotiated(.tls1_2 ... .tls1_3, notAbove) == .TLSv12)
    #expect(try await negotiated(.tls1_3 ... .tls1_3, notAbove) == nil)
  }

  /// A SOCKS proxy of the dictionary gets the host name and resolves it.
  @Test func aSOCKSProxyOfTheDictionary() async throws {
    let proxy = try TestServer()
    proxy.enqueue([
      .expectBytes([5, 1, 0]), .send([5, 0]),
      .expectBytes([5, 1, 0, 3, 9] + Array("a.example".utf8) + [0, 80]), .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
      .serveRoutes,
    ])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [
      "SOCKSEnable": 1, "SOCKSProxy": "127.0.0.1", "SOCKSPort": proxy.port,
    ]
    let session = URLSession(configuration: configuration)
    let (_, response) = try await session.data(from: #require(URL(string: "http://a.example/get")))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(proxy.requests.first?.fields["host"] == "a.example")
    session.invalidateAndCancel()
  }

  @Test func ephemeralOnesShareNothing() async throws {
    let server = try TestServer()
    server.route("GET", "/all") { request in
      guard request.fields["authorization"] != nil else {
        return .init(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return .init(fields: ["Set-Cookie": "a=b", "Cache-Control": "max-age=1000"], body: .bytes([1]))
    }
    let url = try #require(URL(string: server.url("/all")))
    let (one, other) = (URLSessionConfiguration.ephemeral, URLSessionConfiguration.ephemeral)
    let space = URLProtectionSpace(
      host: "127.0.0.1", port: Int(server.port), protocol: NSURLProtectionSpaceHTTP, realm: "here",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    one.urlCredentialStorage?.setDefaultCredential(
      URLCredential(user: "user", password: "pass", persistence: .forSession), for: space)
    func status(_ configuration: URLSessionConfiguration) async throws -> Int? {
      let (_, response) = try await URLSession(configuration: configuration).data(from: url)
      return (response as? HTTPURLResponse)?.statusCode
    }
    #expect(try await status(one) == 200)
    // Sessions of one configuration share its stores.
    #expect(try await status(one) == 200)
    #expect(server.requests.last?.fields["cookie"] == "a=b")
    #expect(try await status(other) == 401)
    #expect(one.httpCookieStorage?.cookies?.count == 1)
    #expect(other.httpCookieStorage?.cookies?.isEmpty == true)
    #expect(server.requests.last?.fields["cookie"] == nil)
    #expect(other.urlCache !== one.urlCache && other.urlCredentialStorage !== one.urlCredentialStorage)
  }
}
