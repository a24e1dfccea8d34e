import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

/// A server that speaks TLS, and a client that comes to it: how each of them is set up. As it is, both are good.
struct TLSPlan: Sendable {
  typealias Version = TestServer.TLS.Version

  let authorities: TLSAuthorities

  // MARK: - The server

  /// The certificates that it sends, its own first.
  var chain: [[UInt8]]
  var key: [UInt8]
  var versions: ClosedRange<Version>
  /// For TLS 1.2 and before, in OpenSSL's words. Nil: the server's choice.
  var ciphers: String?
  /// Whether the server is talked into what OpenSSL holds to be too weak (security level 0).
  var isWeak = false
  /// The group for DHE ciphers, in PEM.
  var dhParameters: String?
  /// An OCSP response.
  var staple: [UInt8]?
  var clients = Clients.anonymous
  /// Whether it speaks HTTP without TLS.
  var isPlain = false
  /// What else stands in nginx's `server` block.
  var nginxLines = ""
  /// What else is said to `openssl s_server`.
  var opensslArguments: [String] = []

  enum Clients: Sendable {
    case anonymous
    /// A certificate is asked for. One that does not lead to `TLSAuthorities.clients` is refused.
    case asked
    case required
  }

  // MARK: - What only our own test server does

  /// What it does on every connection. Nil: it serves routes.
  var script: TestServer.Script?
  /// Whatever is to be different about its TLS.
  var ours: @Sendable (inout TestServer.TLS) -> Void = { _ in }

  // MARK: - The client

  /// As it stands in a URL.
  var host = "a.test"
  var configuration = TLSConfiguration()
  var decideTrust: (@Sendable (Trust) async -> TrustDecision)?
  /// For the handshake.
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

  /// Gives the server a certificate of the intermediate authority's for `a.test`, with changes.
  mutating func presentLeaf(_ change: (inout TestCertificate.Request) -> Void) throws {
    present(try authorities.leaf(change))
  }

  /// A certificate with an RSA key, as some ciphers of TLS 1.2 want it.
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

  /// The client trusts it, and nobody else.
  let root: TestCA
  /// It signs the server's certificates.
  let middle: TestCA
  /// It signs the clients' certificates.
  let clients: TestCA

  private static let shared = Result { try TLSAuthorities() }
  private static let rsa = Result { try TestCA.selfSigned(.init(names: [], keyed: .rsa(2048))).privateKeyDER }

  static func get() throws -> TLSAuthorities { try shared.get() }

  private init() throws {
    root = try TestCA()
    middle = try root.intermediate()
    clients = try TestCA(name: "Larkspur test clients")
  }

  /// Of 2048 bits.
  var rsaKey: [UInt8] { get throws { try Self.rsa.get() } }

  var roots: [Certificate] { get throws { try certificates(root.rootCertificateDER) } }

  func certificates(_ der: [UInt8]) throws -> [Certificate] {
    guard let certificates = Certificate.read(der) else { throw TLSError(.trustStoreUnreadable) }
    return certificates
  }

  /// A server's certificate for `a.test`, with changes.
  func leaf(_ change: (inout Request) -> Void = { _ in }) throws -> TestCertificate {
    var request = Request(names: ["a.test"], ipAddresses: [])
    change(&request)
    return try middle.issue(request)
  }

  /// A client's certificate with its key.
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
