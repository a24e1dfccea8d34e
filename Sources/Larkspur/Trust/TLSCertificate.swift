import Foundation
import LarkspurTLS

/// An X.509 certificate. Immutable, and for any thread.
///
/// Darwin's name is ``SecCertificate``. Only Darwin has one in its system; here it comes with Larkspur.
public struct TLSCertificate: Hashable, Sendable {
  let inner: LarkspurTLS.Certificate

  init(_ inner: LarkspurTLS.Certificate) { self.inner = inner }

  /// Reads one certificate, DER or PEM. Nil: it is none, or there are several.
  public init?(_ data: Data) {
    guard let read = LarkspurTLS.Certificate.read(Array(data)), read.count == 1, let first = read.first else {
      return nil
    }
    inner = first
  }

  /// Reads certificates in PEM, any number, or one in DER. A PEM block that is damaged takes no other along: it is left out.
  ///
  /// - Returns: The certificates in their order, or `nil` if there is none that can be read.
  public static func read(_ data: Data) -> [TLSCertificate]? {
    LarkspurTLS.Certificate.read(Array(data))?.map(TLSCertificate.init)
  }

  /// The certificate as it is signed.
  public var der: Data { Data(inner.der) }

  /// Whom it is about: a distinguished name, as RFC 2253 writes it. No program should decide by it for which host the
  /// certificate is: ``dnsNames`` and ``ipAddresses`` say that.
  public var subject: String { inner.subject }

  /// Who has signed it: a distinguished name, as RFC 2253 writes it.
  public var issuer: String { inner.issuer }

  /// The serial number, the most significant byte first.
  public var serialNumber: Data { Data(inner.serial) }

  /// From when it is valid.
  public var notValidBefore: Date { Date(timeIntervalSince1970: Double(inner.notBefore)) }

  /// Until when it is valid.
  public var notValidAfter: Date { Date(timeIntervalSince1970: Double(inner.notAfter)) }

  /// The names of hosts that it is for; `*` may be the first label. Bytes that are not visible ASCII stand as `\xNN`.
  public var dnsNames: [String] {
    inner.names.compactMap { name in if case .dns(let text) = name { text } else { nil } }
  }

  /// The addresses that it is for.
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

  /// SHA-256 of ``der``: its fingerprint, 32 bytes.
  public var sha256: Data { Data(inner.sha256) }

  /// The key with its algorithm (SubjectPublicKeyInfo), DER.
  public var publicKeyInfo: Data { Data(inner.publicKeyInfo) }

  /// SHA-256 of ``publicKeyInfo``, 32 bytes: what a pin of the key is made of (RFC 7469 2.4).
  public var publicKeySHA256: Data { Data(inner.publicKeySHA256) }
}

extension TLSCertificate: CustomStringConvertible {
  /// Subject, issuer and end, for people to read.
  public var description: String { "\(subject), issued by \(issuer), valid until \(notValidAfter)" }
}

/// Darwin's name for ``TLSCertificate``.
public typealias SecCertificate = TLSCertificate
