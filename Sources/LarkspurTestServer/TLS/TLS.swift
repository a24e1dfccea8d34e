extension TestServer {
  /// How a server speaks TLS. With a certificate alone it does so well; every other property makes it special, or bad.
  ///
  /// ```swift
  /// let ca = try TestCA()
  /// var tls = TestServer.TLS(certificate: try ca.issue())
  /// tls.versions = .tls1_2 ... .tls1_2
  /// let server = try TestServer(tls: tls)
  /// ```
  ///
  /// What single connections do wrong is said by scripts: see ``Step``.
  public struct TLS: Hashable, Sendable {
    // MARK: Certificates

    /// The certificates that are sent, in this order: leave some out, reverse them, add others. The first one counts as
    /// the server's own. None: no handshake can succeed.
    public var chainDER: [[UInt8]]
    /// The key that the server signs with (PKCS#8). It need not be the first certificate's: with another key of the same
    /// kind (EC or RSA) the server's signatures are wrong.
    public var privateKeyDER: [UInt8]
    /// An OCSP response for clients that ask for one: any bytes. See ``TestCA/ocspResponse(for:status:thisUpdate:nextUpdate:digest:signedBy:)``.
    public var stapledResponse: [UInt8]?

    // MARK: Algorithms

    public var versions = Version.tls1_2...Version.tls1_3
    /// For TLS 1.2 and before, in OpenSSL's words: `ECDHE-RSA-AES128-SHA:AES128-SHA`. Nil: OpenSSL's choice.
    public var ciphers: String?
    /// For TLS 1.3: `TLS_CHACHA20_POLY1305_SHA256`. Nil: OpenSSL's choice.
    public var cipherSuites: String?
    /// For the key exchange: `X25519:P-256`. A group for which the client has sent no share makes a HelloRetryRequest.
    /// Nil: OpenSSL's choice.
    public var groups: String?
    /// For signatures: `RSA+SHA1:ECDSA+SHA256`. Nil: OpenSSL's choice.
    public var signatureAlgorithms: String?
    /// The size of the prime for DHE ciphers of TLS 1.2 and before: 512, 768, 1024, 1536, 2048, 3072, 4096, 6144 or 8192.
    /// Nil: no DHE.
    public var dhBits: Int?
    /// OpenSSL's security level. 0, as it is, allows everything that is asked for, however weak.
    public var securityLevel = 0

    // MARK: Resumption

    /// How many TLS 1.3 tickets stand behind a full handshake. 0 to 1000.
    public var ticketCount = 2
    /// Whether tickets hold the session itself, encrypted; in TLS 1.2 there are no others.
    public var hasStatelessTickets = true
    /// Whether the server remembers sessions: for session identifiers (TLS 1.2) and tickets that are not stateless.
    public var keepsSessions = true

    // MARK: Clients

    public var clientCertificate = ClientCertificate.none
    /// Certificates whose subjects stand in the request for a client certificate.
    public var acceptableIssuersDER: [[UInt8]] = []
    public var alpn = ALPN.choose(["http/1.1"])

    // MARK: Records

    /// The most plaintext bytes in one record. Below 512 it is for application data only: handshake messages keep to 512.
    /// Whatever it is, each piece that a script or a route sends begins a record.
    public var recordBytesMax = 16_384

    /// A good server with this certificate and the chain above it.
    public init(certificate: TestCertificate) {
      self.init(chainDER: certificate.chainDER, privateKeyDER: certificate.privateKeyDER)
    }

    /// A server with these certificates and this key (PKCS#8).
    public init(chainDER: [[UInt8]], privateKeyDER: [UInt8]) {
      self.chainDER = chainDER
      self.privateKeyDER = privateKeyDER
    }
  }
}

extension TestServer.TLS {
  public enum Version: Int, Comparable, Hashable, Sendable, CaseIterable {
    case tls1_0 = 0x0301
    case tls1_1, tls1_2, tls1_3

    public static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
  }

  /// Whether the server wants a certificate of the client's.
  public enum ClientCertificate: Hashable, Sendable {
    case none
    /// Any one is accepted, and none as well. It is in ``TestServer/handshakes``.
    case asked
    /// Any one is accepted.
    case required
    /// One that leads to one of these authorities (DER). Others are refused in the handshake.
    case verified(by: [[UInt8]])
  }

  /// What the server says about application protocols (RFC 7301) when the client offers some.
  public enum ALPN: Hashable, Sendable {
    /// Nothing.
    case ignore
    /// The first of these that the client offers; nothing if it offers none.
    case choose([String])
    /// As ``choose(_:)``; if the client offers none of them, the alert `no_application_protocol`.
    case insist([String])
    /// This one, offered or not. (A client that offers no protocol at all gets no answer.)
    case answer(String)
  }
}
