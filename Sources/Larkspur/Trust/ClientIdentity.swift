import Foundation
import LarkspurTLS

/// A certificate with its private key, by which a client shows who it is. Immutable, and for any thread.
///
/// Darwin's name is ``SecIdentity``, and comes out of the keychain there. Here it comes out of files, as curl takes them.
public struct ClientIdentity: Sendable {
  let inner: LarkspurTLS.ClientIdentity

  /// Why files hold no identity.
  public enum Failure: Error, Hashable, Sendable {
    /// The certificate or the key cannot be read.
    case unreadable
    /// The key is encrypted, and the password is wrong or missing.
    case passwordWrong
    /// The key or the archive is encrypted with an algorithm that OpenSSL does not have here, whatever the password: DES and RC2,
    /// for instance, which only its legacy provider has. `openssl pkcs8` or `openssl pkcs12` with `-provider legacy` can write them
    /// anew.
    case encryptionUnsupported
    /// The key is not the certificate's.
    case keyMismatch
    /// There is no memory left.
    case outOfMemory
  }

  /// Reads a certificate with those behind it, and its key.
  ///
  /// - Parameters:
  ///   - certificates: PEM, the client's own first; or one in DER.
  ///   - key: PEM, encrypted with `password` or not; or plain DER.
  ///   - password: Of an encrypted key.
  public init(certificates: Data, key: Data, password: String? = nil) throws(Failure) {
    do throws(TLSError) {
      inner = try LarkspurTLS.ClientIdentity(certificates: Array(certificates), key: Array(key), password: password)
    } catch {
      throw Failure(error)
    }
  }

  /// Reads a PKCS#12 archive: a `.p12` or `.pfx` file.
  public init(pkcs12: Data, password: String) throws(Failure) {
    do throws(TLSError) {
      inner = try LarkspurTLS.ClientIdentity(pkcs12: Array(pkcs12), password: password)
    } catch {
      throw Failure(error)
    }
  }

  private init(inner: LarkspurTLS.ClientIdentity) { self.inner = inner }

  /// The client's own certificate.
  public var certificate: TLSCertificate { TLSCertificate(inner.certificate) }

  /// The certificates behind it, which are sent along.
  public var chain: [TLSCertificate] { inner.chain.map(TLSCertificate.init) }

  /// The same with other certificates behind it.
  public func with(chain: [TLSCertificate]) -> ClientIdentity {
    (try? inner.with(chain: chain.map(\.inner))).map(ClientIdentity.init(inner:)) ?? self
  }
}

extension ClientIdentity.Failure: CustomStringConvertible {
  init(_ error: TLSError) {
    self =
      switch error.problem {
      case .passwordWrong: .passwordWrong
      case .encryptionUnsupported: .encryptionUnsupported
      case .keyMismatch: .keyMismatch
      case .outOfMemory: .outOfMemory
      default: .unreadable
      }
  }

  /// For people to read.
  public var description: String {
    switch self {
    case .unreadable: "the client certificate or its key cannot be read"
    case .passwordWrong: "the password of the client's key is wrong or missing"
    case .encryptionUnsupported: "the client's key is encrypted with an algorithm that OpenSSL does not have here"
    case .keyMismatch: "the key is not the client certificate's"
    case .outOfMemory: "out of memory"
    }
  }
}

/// Darwin's name for ``ClientIdentity``.
public typealias SecIdentity = ClientIdentity
