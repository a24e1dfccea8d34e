extension TestServer {
  /// The TLS settings of a server. A certificate alone makes a good server; every other property makes a special or a
  /// bad one.
  ///
  /// ```swift
  /// let ca = try TestCA()
  /// var tls = TestServer.TLS(certificate: try ca.issue())
  /// tls.versions = .tls1_2 ... .tls1_2
  /// let server = try TestServer(tls: tls)
  /// ```
  ///
  /// Scripts make faults of single connections: see ``Step``.
  public struct TLS: Hashable, Sendable {
    // MARK: Certificates

    /// The certificates to send, in this order: leave some out, reverse them, add others. The first one counts as the
    /// server's own. If empty, every handshake fails.
    public var chainDER: [[UInt8]]
    /// The key that the server signs with (PKCS#8). It need not be the key of the first certificate: with another key
    /// of the same kind (EC or RSA) the server's signatures are wrong.
    public var privateKeyDER: [UInt8]
    /// The OCSP response for clients that ask for one: any bytes. See
    /// ``TestCA/ocspResponse(for:status:thisUpdate:nextUpdate:digest:signedBy:)``.
    public var stapledResponse: [UInt8]?

    // MARK: Algorithms

    /// The versions that the server accepts.
    public var versions = Version.tls1_2...Version.tls1_3
    /// The ciphers for TLS 1.2 and before, by OpenSSL's names: `ECDHE-RSA-AES128-SHA:AES128-SHA`. If `nil`, OpenSSL's
    /// default.
    public var ciphers: String?
    /// The cipher suites for TLS 1.3: `TLS_CHACHA20_POLY1305_SHA256`. If `nil`, OpenSSL's default.
    public var cipherSuites: String?
    /// The groups for the key exchange: `X25519:P-256`. A group for which the client has sent no share causes a
    /// HelloRetryRequest. If `nil`, OpenSSL's default.
    public var groups: String?
    /// The signature algorithms: `RSA+SHA1:ECDSA+SHA256`. If `nil`, OpenSSL's default.
    public var signatureAlgorithms: String?
    /// The size in bits of the prime for DHE ciphers of TLS 1.2 and before: 512, 768, 1024, 1536, 2048, 3072, 4096,
    /// 6144 or 8192. If `nil`, the server does no DHE.
    public var dhBits: Int?
    /// OpenSSL's security level. The default, 0, allows every setting, however weak.
    public var securityLevel = 0

    // MARK: Resumption

    /// The number of TLS 1.3 tickets behind a full handshake, 0 to 1000.
    public var ticketCount = 2
    /// Whether tickets hold the session itself, encrypted. In TLS 1.2 all tickets do.
    public var hasStatelessTickets = true
    /// Whether the server keeps sessions: for session identifiers (TLS 1.2) and for tickets that are not stateless.
    public var keepsSessions = true

    // MARK: Clients

    /// Whether the server asks for a client certificate, and which ones it accepts.
    public var clientCertificate = ClientCertificate.none
    /// Certificates whose subjects the server names in its request for a client certificate.
    public var acceptableIssuersDER: [[UInt8]] = []
    /// The server's answer to the application protocols that a client offers.
    public var alpn = ALPN.choose(["http/1.1"])

    // MARK: Records

    /// The maximum number of plaintext bytes in one record. Values below 512 apply to application data only: handshake
    /// messages use 512. Whatever the value, each piece that a script or a route sends begins a new record.
    public var recordBytesMax = 16_384

    /// Makes the settings of a good server with this certificate and the chain above it.
    public init(certificate: TestCertificate) {
      self.init(chainDER: certificate.chainDER, privateKeyDER: certificate.privateKeyDER)
    }

    /// Makes the settings of a server with these certificates and this key (PKCS#8).
    public init(chainDER: [[UInt8]], privateKeyDER: [UInt8]) {
      self.chainDER = chainDER
      self.privateKeyDER = privateKeyDER
    }
  }
}

extension TestServer.TLS {
  /// A version of TLS. The raw value is its number on the wire.
  public enum Version: Int, Comparable, Hashable, Sendable, CaseIterable {
    /// TLS 1.0 (RFC 2246), which clients should refuse.
    case tls1_0 = 0x0301
    /// TLS 1.1 (RFC 4346), which clients should refuse.
    case tls1_1
    /// TLS 1.2 (RFC 5246).
    case tls1_2
    /// TLS 1.3 (RFC 8446).
    case tls1_3

    /// Returns whether the first version is older than the second.
    public static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
  }

  /// Whether the server asks for a client certificate, and which ones it accepts.
  public enum ClientCertificate: Hashable, Sendable {
    /// The server asks for no certificate.
    case none
    /// The server accepts any certificate, or none. A certificate that is sent is in ``TestServer/handshakes``.
    case asked
    /// The server accepts any certificate, but the client has to send one.
    case required
    /// The client has to send a certificate that leads to one of these authorities (DER). The server refuses others in
    /// the handshake.
    case verified(by: [[UInt8]])
  }

  /// The server's answer to the application protocols that a client offers (RFC 7301).
  public enum ALPN: Hashable, Sendable {
    /// No answer.
    case ignore
    /// The first of these protocols that the client offers. No answer if the client offers no such protocol.
    case choose([String])
    /// The first of these protocols that the client offers; the alert `no_application_protocol` if it offers none of
    /// them.
    case insist([String])
    /// This protocol, whether the client offers it or not. A client that offers no protocol at all gets no answer.
    case answer(String)
  }
}
