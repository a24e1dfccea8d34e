extension TestServer {
  /// A record of a TLS handshake and of the client's part in it.
  public struct Handshake: Hashable, Sendable {
    /// The number of the connection: 1 for the first one that the server accepted.
    public var connection: Int
    /// The reason, in words, why the handshake failed, or `nil` if it was completed.
    public var failure: String?
    /// The name that the client asked for (SNI), or `nil` if it sent no name.
    public var serverName: String?
    /// The version: `TLSv1.3`, `TLSv1.2` and so on.
    public var version = ""
    /// The cipher by OpenSSL's name. Empty if none was agreed on.
    public var cipher = ""
    /// Whether the handshake resumed an earlier session.
    public var isResumed = false
    /// The application protocols that the client offered, in its order.
    public var alpnOffered: [String] = []
    /// The application protocol that the server answered with, if any.
    public var alpnChosen: String?
    /// The numbers of the client's cipher suites, in its order.
    public var ciphersOffered: [Int] = []
    /// The numbers of the extensions in the ClientHello, in the client's order.
    public var extensionsOffered: [Int] = []
    /// The client's certificate, if it sent one.
    public var clientCertificateDER: [UInt8]?
    /// The subject of the client's certificate in the form of RFC 2253: `CN=me,O=us`.
    public var clientCertificateSubject: String?
    /// The number of later handshakes on the same connection (TLS 1.2 and before).
    public var renegotiations = 0
    /// The alerts received so far, close_notify among them. The server updates the record while the connection is open.
    /// At most 64 alerts of a connection are recorded, both directions counted together.
    public var alertsReceived: [Alert] = []
    /// The alerts that OpenSSL has sent for the server, close_notify among them. Alerts that a script sends by
    /// ``TestServer/Step/sendAlert(_:isFatal:)`` are not recorded.
    public var alertsSent: [Alert] = []

    /// Whether the client asks for a stapled OCSP response.
    public var asksForStaple: Bool { extensionsOffered.contains(5) }
  }

  /// A TLS alert (RFC 8446, section 6).
  public struct Alert: Hashable, Sendable, CustomStringConvertible {
    /// Whether the alert ends the connection. Otherwise it is a warning.
    public var isFatal: Bool
    /// The number of the description, such as 42 for `bad_certificate`.
    public var number: UInt8

    /// Creates an alert, a fatal one by default.
    public init(isFatal: Bool = true, number: UInt8) {
      self.isFatal = isFatal
      self.number = number
    }

    /// The alert in words: `alert 42 bad_certificate`.
    public var description: String {
      "alert \(number)" + (Self.names[number].map { " " + $0 } ?? "")
    }

    private static let names: [UInt8: String] = [
      0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed",
      22: "record_overflow", 30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate",
      42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
      46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error",
      51: "decrypt_error", 60: "export_restriction", 70: "protocol_version", 71: "insufficient_security",
      80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
      109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
      113: "bad_certificate_status_response", 115: "unknown_psk_identity", 116: "certificate_required",
      120: "no_application_protocol",
    ]
  }
}
