import Foundation
import LarkspurTLS

/// An X.509 certificate. Immutable, and safe to use from any thread.
///
/// Darwin's name is ``SecCertificate``, and is part of its system. On Linux Larkspur provides the type.
public struct TLSCertificate: Hashable, Sendable {
  let inner: LarkspurTLS.Certificate

  init(_ inner: LarkspurTLS.Certificate) { self.inner = inner }

  /// Reads one certificate in DER or PEM. Returns `nil` if the data is not a certificate, or contains several.
  public init?(_ data: Data) {
    guard let read = LarkspurTLS.Certificate.read(Array(data)), read.count == 1, let first = read.first else {
      return nil
    }
    inner = first
  }

  /// Reads any number of certificates in PEM, or one in DER. A damaged PEM block is skipped, and does not affect the
  /// others.
  ///
  /// - Returns: The certificates in their order, or `nil` if none can be read.
  public static func read(_ data: Data) -> [TLSCertificate]? {
    LarkspurTLS.Certificate.read(Array(data))?.map(TLSCertificate.init)
  }

  /// The signed certificate in DER.
  public var der: Data { Data(inner.der) }

  /// The subject: a distinguished name in the form of RFC 2253. Do not use it to decide which host the certificate is
  /// for; use ``dnsNames`` and ``ipAddresses``.
  public var subject: String { inner.subject }

  /// The issuer: a distinguished name in the form of RFC 2253.
  public var issuer: String { inner.issuer }

  /// The serial number, most significant byte first.
  public var serialNumber: Data { Data(inner.serial) }

  /// The start of the certificate's validity.
  public var notValidBefore: Date { Date(timeIntervalSince1970: Double(inner.notBefore)) }

  /// The end of the certificate's validity.
  public var notValidAfter: Date { Date(timeIntervalSince1970: Double(inner.notAfter)) }

  /// The host names that the certificate is for. The first label may be `*`. Bytes that are not visible ASCII are
  /// written as `\xNN`.
  public var dnsNames: [String] {
    inner.names.compactMap { name in if case .dns(let text) = name { text } else { nil } }
  }

  /// The addresses that the certificate is for.
  public var ipAddresses: [String] {
    inner.names.compactMap { name in
      guard case .address(let bytes) = name else { return nil }
      if bytes.count == 4 { return bytes.map(String.init).joined(separator: ".") }
      let groups = stride(from: 0, to: bytes.count - 1, by: 2).map { index in
        String(UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]), radix: 16)
      }
      let text = groups.joined(separator: ":")
      return ServerName(host: text)?.text ?? text
    }
  }

  /// The fingerprint: SHA-256 of ``der``, 32 bytes.
  public var sha256: Data { Data(inner.sha256) }

  /// The public key with its algorithm (SubjectPublicKeyInfo), in DER.
  public var publicKeyInfo: Data { Data(inner.publicKeyInfo) }

  /// SHA-256 of ``publicKeyInfo``, 32 bytes, which a pin of the key contains (RFC 7469 2.4).
  public var publicKeySHA256: Data { Data(inner.publicKeySHA256) }
}

extension TLSCertificate: CustomStringConvertible {
  /// Subject, issuer and end of validity, in a human-readable form.
  public var description: String { "\(subject), issued by \(issuer), valid until \(notValidAfter)" }
}

/// Darwin's name for ``TLSCertificate``.
public typealias SecCertificate = TLSCertificate
