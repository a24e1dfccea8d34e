import CLarkspurOpenSSL
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// Real proxies in front of the project's test servers.
@Suite(.serialized, .ownThread) struct RealProxyTests {
  let ca: TestCA
  let plain: TestServer
  let secure: TestServer
  let security: Security

  init() throws {
    ca = try TestCA()
    plain = try TestServer()
    secure = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    var configuration = TLSConfiguration()
    configuration.roots = .only(try #require(Certificate.read(ca.rootCertificateDER)))
    security = Security(try TLSContext(configuration))
  }

  /// Makes one request for `/bytes/100`, or several over one connection.
  func get(
    _ server: TestServer, host: String = "localhost", through proxy: String, times count: Int = 1,
    port: Int? = nil, authorize: (@Sendable (ProxyChallenge) async -> String?)? = nil
  ) async throws -> Result<[Int], TransportError> {
    let loop = try ClientLoop()
    defer { loop.stop() }
    let isSecure = server === secure
    var route = ProxyRoute(try Proxy(proxy), security: security)
    if let authorize { route.makeAuthorizer = { AskingAuthorizer(authorize) } }
    let port = UInt16(port ?? server.port)
    let head = try Self.head("\(host):\(port)", to: route.proxy, isSecure: isSecure)
    return await loop.run { [route, security] in
      do throws(TransportError) {
        let deadline = loop.kernel.now().advanced(by: .seconds(60))
        let connection = try await Connection.open(
          host: host, port: port, security: isSecure ? security : nil, via: route, on: loop, deadline: deadline)
        defer { connection.close() }
        var statuses: [Int] = []
        for _ in 0..<count {
          let exchange = try await connection.send(head, deadline: deadline)
          let body = try await exchange.collectBody(bytesMax: 1 << 16)
          statuses.append(body == TestServer.content(0..<100) ? exchange.status : -exchange.status)
        }
        return .success(statuses)
      } catch {
        return .failure(error)
      }
    }
  }

  private static func head(_ authority: String, to proxy: Proxy, isSecure: Bool) throws -> RequestHead {
    guard proxy.forwards(toSecure: isSecure) else {
      return try RequestWriter(method: "GET", target: "/bytes/100", host: authority).finish()
    }
    var writer = try RequestWriter(
      method: "GET", target: "http://\(authority)/bytes/100", host: authority, to: .proxy)
    if let credentials = proxy.credentials { try writer.field("Proxy-Authorization", credentials.basicAuthorization) }
    return writer.finish()
  }

  static func failure(_ outcome: Result<[Int], TransportError>) -> ProxyError.Failure? {
    guard case .failure(.proxy(let error)) = outcome else { return nil }
    return error.failure
  }

  // MARK: - HTTP

  @Test(arguments: [RealProxy.Kind.squid, .tinyproxy]) func http(kind: RealProxy.Kind) async throws {
    let proxy = try RealProxy(kind)
    let url = "http://me:secret@127.0.0.1:\(proxy.port)"
    #expect(try await get(plain, through: url).get() == [200])
    #expect(try await get(secure, through: url, times: 3).get() == [200, 200, 200])
    // The credentials reach the proxy only.
    for server in [plain, secure] {
      #expect(server.requests.allSatisfy { $0.fields["Proxy-Authorization"] == nil && $0.target == "/bytes/100" })
    }
    #expect(secure.handshakes.first?.serverName == "localhost")
  }

  @Test(arguments: [RealProxy.Kind.squid, .tinyproxy]) func wrongPassword(kind: RealProxy.Kind) async throws {
    let proxy = try RealProxy(kind)
    let url = "http://me:wrong@127.0.0.1:\(proxy.port)"
    let outcome = try await get(secure, through: url)
    // tinyproxy answers a wrong password with 401.
    let expected: TunnelError =
      kind == .squid ? .authenticationRequired : .refused(status: 401, reason: "Unauthorized")
    #expect(Self.failure(outcome) == .tunnel(expected), "\(outcome)")
    #expect(try await get(plain, through: url).get() == [kind == .squid ? -407 : -401])
    #expect(plain.requestsReceived + secure.requestsReceived == 0)
  }

  /// The authorizer sends Basic credentials after the proxy's challenge.
  @Test(arguments: [RealProxy.Kind.squid, .tinyproxy]) func theHook(kind: RealProxy.Kind) async throws {
    let proxy = try RealProxy(kind)
    let challenges = Mutex<[String]>([])
    let outcome = try await get(secure, through: "127.0.0.1:\(proxy.port)") { challenge in
      challenges.withLock { $0 += challenge.values }
      return UserInfo(user: Array("me".utf8), password: Array("secret".utf8)).basicAuthorization
    }
    #expect(try outcome.get() == [200])
    #expect(challenges.withLock { $0.count } == 1)
    #expect(challenges.withLock { $0.first?.hasPrefix("Basic realm=") } == true)
  }

  /// TLS with the proxy, and TLS with the server within it.
  @Test func overTLS() async throws {
    let proxy = try RealProxy(.squid, certificate: try ca.issue())
    let url = "https://me:secret@localhost:\(proxy.securePort)"
    #expect(try await get(plain, through: url).get() == [200])
    #expect(try await get(secure, through: url, times: 3).get() == [200, 200, 200])
  }

  @Test(arguments: [RealProxy.Kind.squid, .tinyproxy]) func aServerThatIsNotThere(kind: RealProxy.Kind) async throws {
    let proxy = try RealProxy(kind)
    let outcome = try await get(
      secure, host: "127.0.0.1", through: "http://me:secret@127.0.0.1:\(proxy.port)", port: 1)
    guard case .tunnel(.refused(let status, _)) = Self.failure(outcome) else {
      Issue.record("\(outcome)")
      return
    }
    #expect(500...599 ~= status)
  }

  /// Digest as squid requires it (RFC 7616): the authorizer answers the challenge.
  @Test(arguments: [("secret", true), ("wrong", false)]) func digest(password: String, isKnown: Bool) async throws {
    let proxy = try RealProxy(.squidDigest)
    let outcome = try await get(secure, through: "127.0.0.1:\(proxy.port)") { challenge in
      let parts = challenge.values.first?.split(separator: "\"").map(String.init) ?? []
      guard let index = parts.firstIndex(where: { $0.hasSuffix("nonce=") }), index + 1 < parts.count else { return nil }
      let nonce = parts[index + 1]
      let own = Self.md5("me:\(RealProxy.realm):\(password)")
      let target = challenge.request.target
      let request = Self.md5("\(challenge.request.method):\(target)")
      let response = Self.md5("\(own):\(nonce):00000001:abc:auth:\(request)")
      return
        "Digest username=\"me\", realm=\"\(RealProxy.realm)\", nonce=\"\(nonce)\", uri=\"\(target)\", "
        + "qop=auth, nc=00000001, cnonce=\"abc\", response=\"\(response)\""
    }
    if isKnown {
      #expect(try outcome.get() == [200])
    } else {
      #expect(Self.failure(outcome) == .tunnel(.tooManyChallenges(limit: TunnelMachine.requestsMax)))
    }
  }

  private static func md5(_ text: String) -> String {
    var digest = [UInt8](repeating: 0, count: 16)
    var count = digest.count
    _ = EVP_Q_digest(nil, "MD5", nil, text, text.utf8.count, &digest, &count)
    let digits = Array("0123456789abcdef")
    return String(digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
  }

  // MARK: - SOCKS

  @Test(arguments: ["socks4", "socks4a", "socks5", "socks5h"]) func dante(kind: String) async throws {
    let proxy = try RealProxy(.dante)
    let url = "\(kind)://127.0.0.1:\(proxy.port)"
    // dante's SOCKS4a does not resolve names that only the hosts file has.
    let host = kind == "socks4a" ? "127.0.0.1" : "localhost"
    #expect(try await get(plain, host: host, through: url, times: 2).get() == [200, 200])
    #expect(try await get(secure, host: host, through: url, times: 2).get() == [200, 200])
    let refused = try await get(plain, host: "127.0.0.1", through: url, port: 1)
    let refusal: SOCKSError.Refusal = kind.hasPrefix("socks4") ? .rejected : .connectionRefused
    #expect(Self.failure(refused) == .socks(.refused(refusal)), "\(refused)")
  }

  @Test func microsocks() async throws {
    let proxy = try RealProxy(.microsocks)
    for kind in ["socks5", "socks5h"] {
      let url = "\(kind)://me:secret@127.0.0.1:\(proxy.port)"
      #expect(try await get(plain, through: url).get() == [200])
      #expect(try await get(secure, through: url).get() == [200])
    }
    let wrong = try await get(plain, through: "socks5h://me:wrong@127.0.0.1:\(proxy.port)")
    #expect(Self.failure(wrong) == .socks(.credentialsRefused), "\(wrong)")
    let anonymous = try await get(plain, through: "socks5h://127.0.0.1:\(proxy.port)")
    #expect(Self.failure(anonymous) == .socks(.noMethodAccepted), "\(anonymous)")
  }
}
