import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Opening handshakes of WebSockets: passwords, cookies, redirections, proxies and TLS.
@Suite(.serialized, .ownThread) struct WebSocketHandshakeTests {
  private let peer: PythonServer
  /// The answer of the server at `/about`, without a subprotocol.
  private static let about = "subprotocol=None extensions=permessage-deflate"

  init() throws {
    peer = try PythonServer.webSockets()
  }

  /// Expects that a WebSocket does not open, because the response has another status than 101.
  private func expectRefusal(_ status: Int, _ socket: URLSessionWebSocketTask) async throws {
    let error = await #expect(throws: URLError.self) { _ = try await socket.receive() }
    #expect(error?.code == .badServerResponse)
    #expect((socket.response as? HTTPURLResponse)?.statusCode == status)
  }

  // MARK: - Passwords

  @Test func basic() async throws {
    let server = try SessionServer(
      .nginx, peer.nginxLocation("/secret/", "auth_basic larkspur; auth_basic_user_file FOLDER/users;"))
    let url = "ws://127.0.0.1:\(server.port)/secret/about"
    let recorder = SessionRecorder("wrong", "secret")
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    #expect(try await session.openSocket(url).receiveText() == Self.about)
    let method = NSURLAuthenticationMethodHTTPBasic
    #expect(
      recorder.challenges.withLock { $0 } == [
        .init(method: method, realm: "larkspur", isProxy: false, failures: 0),
        .init(method: method, realm: "larkspur", isProxy: false, failures: 1),
      ])
    try await expectRefusal(401, URLSession(configuration: .ephemeral).openSocket(url))
  }

  @Test func digest() async throws {
    let server = try SessionServer(
      .apache,
      """
      \(peer.apacheProxy("/secret/"))
      <Location /secret/>
        AuthType Digest
        AuthName larkspur
        AuthDigestProvider file
        AuthUserFile FOLDER/digest-users
        Require valid-user
      </Location>
      """)
    let url = "ws://127.0.0.1:\(server.port)/secret/about"
    let recorder = SessionRecorder("wrong", "secret")
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    for _ in 0..<2 { #expect(try await session.openSocket(url).receiveText() == Self.about) }
    // The second WebSocket uses the credential of the first one.
    #expect(
      recorder.challenges.withLock { $0.map(\.method) }
        == Array(repeating: NSURLAuthenticationMethodHTTPDigest, count: 2))
    try await expectRefusal(401, URLSession(configuration: .ephemeral).openSocket(url))
  }

  // MARK: - Cookies and redirections

  @Test func cookies() async throws {
    let session = URLSession(configuration: .ephemeral)
    let url = "ws://127.0.0.1:\(peer.port)/cookies"
    #expect(try await session.openSocket(url).receiveText() == "")
    #expect(try await session.openSocket(url).receiveText() == "flavour=plain")
  }

  @Test func redirections() async throws {
    let server = try SessionServer(
      .nginx,
      """
      \(peer.nginxLocation())
      location = /moved { return 302 /about; }
      location = /relative { absolute_redirect off; return 307 about; }
      location = /away { return 308 http://127.0.0.1:\(peer.port)/about; }
      location = /loop { return 302 /loop; }
      location = /none { return 404; }
      """)
    let session = URLSession(configuration: .ephemeral)
    for path in ["moved", "relative", "away"] {
      let socket = try session.openSocket("ws://127.0.0.1:\(server.port)/\(path)", protocols: ["chat.v2"])
      #expect(try await socket.receiveText() == "subprotocol=chat.v2 extensions=permessage-deflate", "\(path)")
      #expect(socket.response?.url?.path == "/about", "\(path)")
    }
    let loop = try session.openSocket("ws://127.0.0.1:\(server.port)/loop")
    let error = await #expect(throws: URLError.self) { _ = try await loop.receive() }
    #expect(error?.code == .httpTooManyRedirects)
    try await expectRefusal(404, session.openSocket("ws://127.0.0.1:\(server.port)/none"))
    // A server that does not know WebSockets ignores the fields of the handshake.
    let stranger = try SessionServer(.nginx, "")
    try await expectRefusal(200, session.openSocket("ws://127.0.0.1:\(stranger.port)/small"))
  }

  // MARK: - Proxies

  /// Both kinds of WebSockets go through squid by CONNECT, and only with its password.
  @Test func squid() async throws {
    let proxy = try RealProxy(.squid)
    let authorities = try TLSAuthorities.get()
    let secure = try secureServer(authorities) { _ in }
    for hasPassword in [true, false] {
      let configuration = try trusting(authorities)
      var dictionary: [AnyHashable: Any] = [:]
      for kind in ["HTTP", "HTTPS"] {
        dictionary[kind + "Enable"] = true
        dictionary[kind + "Proxy"] = "127.0.0.1"
        dictionary[kind + "Port"] = Int(proxy.port)
        dictionary[kind + "User"] = hasPassword ? "me" : nil
        dictionary[kind + "Password"] = hasPassword ? "secret" : nil
      }
      configuration.connectionProxyDictionary = dictionary
      let session = URLSession(configuration: configuration)
      for server in ["ws://localhost:\(peer.port)", "wss://localhost:\(secure.tcpPort)"] {
        let socket = try session.openSocket(server + "/echo")
        if hasPassword {
          let data = Data(TestServer.content(count: 1 << 20))
          try await socket.send(.data(data))
          #expect(try await socket.receiveData() == data, "\(server)")
          socket.cancel(with: .normalClosure, reason: nil)
        } else {
          await #expect(throws: URLError.self, "\(server)") { _ = try await socket.receive() }
        }
      }
    }
  }

  // MARK: - TLS

  /// Starts nginx with TLS in front of the WebSocket server.
  private func secureServer(
    _ authorities: TLSAuthorities, _ change: (inout TLSPlan) throws -> Void
  ) throws -> NginxServer {
    var plan = try TLSPlan(authorities, .tls1_3)
    try plan.presentLeaf { $0 = .init(names: ["localhost"], ipAddresses: []) }
    plan.nginxLines = peer.nginxLocation()
    try change(&plan)
    return try NginxServer(plan)
  }

  /// Returns a configuration that trusts the root of these tests only.
  private func trusting(_ authorities: TLSAuthorities) throws -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([
      try #require(TLSCertificate(Data(authorities.root.rootCertificateDER)))
    ])
    return configuration
  }

  @Test func trustAndPins() async throws {
    let authorities = try TLSAuthorities.get()
    var chain: [[UInt8]] = []
    let server = try secureServer(authorities) { chain = $0.chain }
    let url = "wss://localhost:\(server.tcpPort)/about"
    let stranger = try URLSession(configuration: .ephemeral).openSocket(url)
    let refusal = await #expect(throws: URLError.self) { _ = try await stranger.receive() }
    #expect(refusal?.code == .serverCertificateUntrusted)

    let configuration = try trusting(authorities)
    let leaf = try #require(chain.first)
    let own = CertificatePin.publicKey(of: try #require(TLSCertificate(Data(leaf))))
    configuration.tlsTrustSettings.pins = [try #require(PinnedHost("localhost", pins: [own]))]
    #expect(try await URLSession(configuration: configuration).openSocket(url).receiveText() == Self.about)

    let mismatches = Mutex<[PinningFailure]>([])
    configuration.tlsTrustSettings.pins = [
      try #require(PinnedHost("localhost", pins: [.publicKeySHA256(Data(count: 32))]))
    ]
    configuration.tlsTrustSettings.pinMismatched = { mismatch in mismatches.withLock { $0.append(mismatch) } }
    let pinned = try URLSession(configuration: configuration).openSocket(url)
    let error = await #expect(throws: URLError.self) { _ = try await pinned.receive() }
    #expect(error?.code == .serverCertificateUntrusted)
    #expect(mismatches.withLock { $0.map(\.host) } == ["localhost"])
  }

  @Test func clientCertificate() async throws {
    let authorities = try TLSAuthorities.get()
    let server = try secureServer(authorities) { $0.clients = .required }
    let url = "wss://localhost:\(server.tcpPort)/about"
    let configuration = try trusting(authorities)
    // nginx answers a client without a certificate with 400.
    try await expectRefusal(400, URLSession(configuration: configuration).openSocket(url))
    let issued = try authorities.clients.issue(.init(names: [], ipAddresses: []))
    configuration.tlsTrustSettings.identity = try ClientIdentity(
      certificates: Data(issued.certificateDER), key: Data(issued.privateKeyDER))
    #expect(try await URLSession(configuration: configuration).openSocket(url).receiveText() == Self.about)
  }
}
