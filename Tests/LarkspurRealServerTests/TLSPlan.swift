import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

/// The configuration of a TLS server and of a client that visits it. Both are good by default.
struct TLSPlan: Sendable {
  typealias Version = TestServer.TLS.Version

  let authorities: TLSAuthorities

  // MARK: - The server

  /// The certificates that the server sends, its own first.
  var chain: [[UInt8]]
  var key: [UInt8]
  var versions: ClosedRange<Version>
  /// The ciphers for TLS 1.2 and earlier, in OpenSSL's notation, or `nil` for the server's default.
  var ciphers: String?
  /// Whether the server has OpenSSL's security level 0, which allows weak parameters.
  var isWeak = false
  /// The group for DHE ciphers, in PEM.
  var dhParameters: String?
  /// The stapled OCSP response.
  var staple: [UInt8]?
  var clients = Clients.anonymous
  /// Whether the server speaks HTTP without TLS.
  var isPlain = false
  /// Additional lines of nginx's `server` block.
  var nginxLines = ""
  /// Additional arguments of `openssl s_server`.
  var opensslArguments: [String] = []

  enum Clients: Sendable {
    case anonymous
    /// A certificate is requested. A certificate that does not lead to `TLSAuthorities.clients` is refused.
    case asked
    case required
  }

  // MARK: - The test server only

  /// The steps on every connection, or `nil` to serve routes.
  var script: TestServer.Script?
  /// Changes the TLS configuration of the test server.
  var ours: @Sendable (inout TestServer.TLS) -> Void = { _ in }

  // MARK: - The client

  /// The host as in a URL.
  var host = "a.test"
  var configuration = TLSConfiguration()
  var decideTrust: (@Sendable (Trust) async -> TrustDecision)?
  /// Timeout of the handshake.
  var patience = Duration.seconds(60)

  init(_ authorities: TLSAuthorities, _ version: Version) throws {
    self.authorities = authorities
    versions = version...version
    chain = []
    key = []
    configuration.roots = .only(try authorities.roots)
    present(try authorities.leaf())
  }

  /// Gives the server a certificate and the chain above it, without the root.
  mutating func present(_ certificate: TestCertificate) {
    chain = certificate.chainDER
    key = certificate.privateKeyDER
  }

  /// Gives the server a certificate of the intermediate authority for `a.test`, with changes.
  mutating func presentLeaf(_ change: (inout TestCertificate.Request) -> Void) throws {
    present(try authorities.leaf(change))
  }

  /// Gives the server a certificate with an RSA key, which some ciphers of TLS 1.2 need.
  mutating func presentRSA() throws {
    let key = try authorities.rsaKey
    try presentLeaf {
      $0.privateKeyDER = key
      $0.keyUsage = [.digitalSignature, .keyEncipherment]
    }
  }
}

/// The authorities of these tests, made once.
struct TLSAuthorities: Sendable {
  typealias Request = TestCertificate.Request

  /// The only root that the client trusts.
  let root: TestCA
  /// The issuer of the server's certificates.
  let middle: TestCA
  /// The issuer of the clients' certificates.
  let clients: TestCA

  private static let shared = Result { try TLSAuthorities() }
  private static let rsa = Result { try TestCA.selfSigned(.init(names: [], keyed: .rsa(2048))).privateKeyDER }

  static func get() throws -> TLSAuthorities { try shared.get() }

  private init() throws {
    root = try TestCA()
    middle = try root.intermediate()
    clients = try TestCA(name: "Larkspur test clients")
  }

  /// An RSA key of 2048 bits.
  var rsaKey: [UInt8] { get throws { try Self.rsa.get() } }

  var roots: [Certificate] { get throws { try certificates(root.rootCertificateDER) } }

  func certificates(_ der: [UInt8]) throws -> [Certificate] {
    guard let certificates = Certificate.read(der) else { throw TLSError(.trustStoreUnreadable) }
    return certificates
  }

  /// Issues a server's certificate for `a.test`, with changes.
  func leaf(_ change: (inout Request) -> Void = { _ in }) throws -> TestCertificate {
    var request = Request(names: ["a.test"], ipAddresses: [])
    change(&request)
    return try middle.issue(request)
  }

  /// Issues a client's certificate with its key.
  func identity(by authority: TestCA? = nil) throws -> ClientIdentity {
    var request = Request(names: [], ipAddresses: [])
    request.commonName = "a client"
    let certificate = try (authority ?? clients).issue(request)
    return try ClientIdentity(certificates: certificate.certificateDER, key: certificate.privateKeyDER)
  }
}

extension TestCertificate.Request {
  init(names: [String], keyed key: TestCertificate.KeyKind) {
    self.init(names: names, ipAddresses: [])
    self.key = key
  }
}
