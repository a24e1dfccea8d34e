import Foundation
import LarkspurTLS
import LarkspurTransport

/// A client certificate with its private key. Immutable, and safe to use from any thread.
///
/// Darwin's name is ``SecIdentity``. On Darwin it comes from the keychain; here it comes from files, as for curl. An
/// identity made by ``init(certificateFile:keyFile:password:)`` follows its files.
public struct ClientIdentity: Sendable {
  let inner: LarkspurTLS.ClientIdentity

  /// The reason why no identity could be read.
  public enum Failure: Error, Hashable, Sendable {
    /// The certificate or the key cannot be read.
    case unreadable
    /// The key is encrypted, and the password is wrong or missing.
    case passwordWrong
    /// The key or the archive is encrypted with an algorithm that this OpenSSL does not support with any password, for
    /// instance DES or RC2, which only its legacy provider has. `openssl pkcs8` or `openssl pkcs12` with `-provider
    /// legacy` can convert the file.
    case encryptionUnsupported
    /// The key does not belong to the certificate.
    case keyMismatch
    /// There is not enough memory.
    case outOfMemory
  }

  /// Reads a certificate, the rest of its chain, and its key.
  ///
  /// - Parameters:
  ///   - certificates: PEM, the client's own first; or one certificate in DER.
  ///   - key: PEM, encrypted with `password` or not; or unencrypted DER.
  ///   - password: The password of an encrypted key.
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

  /// Reads an identity from files, which new connections read again when they change: certificates of short life are
  /// replaced on disk. The identity has to be that of ``TLSTrustSettings/identity``; elsewhere it keeps its first content.
  ///
  /// A change counts for the next connection where the kernel notes changes (inotify), and within a second elsewhere.
  /// Connections that are open keep their identity. While the new files cannot be used, new connections show the earlier
  /// identity, and ``TLSTrustSettings/fileFailed`` is called. curl's options are `--cert`, `--key` and `--pass`.
  ///
  /// - Parameters:
  ///   - certificateFile: The path of a file of at most 4 MiB: PEM, with the rest of the chain; or DER; or, without
  ///     `keyFile`, a PKCS#12 archive.
  ///   - keyFile: The path of the key, or `nil` if the first file contains it.
  ///   - password: The password of an encrypted key or of the archive.
  public init(certificateFile: String, keyFile: String? = nil, password: String? = nil) throws(Failure) {
    do throws(TLSError) {
      inner = try LarkspurTLS.ClientIdentity(
        files: .init(certificates: certificateFile, key: keyFile, password: password))
    } catch {
      throw Failure(error)
    }
  }

  /// Reads the contents of one file, or of the certificate's and the key's, whose paths may be those of pipes.
  package init(contents: [Data], password: String?) throws(Failure) {
    do throws(TLSError) {
      inner = try LarkspurTLS.ClientIdentity(contents: contents.map { Array($0) }[...], password: password)
    } catch {
      throw Failure(error)
    }
  }

  private init(inner: LarkspurTLS.ClientIdentity) { self.inner = inner }

  /// The client's own certificate.
  public var certificate: TLSCertificate { TLSCertificate(inner.certificate) }

  /// The rest of the chain, which is sent along.
  public var chain: [TLSCertificate] { inner.chain.map(TLSCertificate.init) }

  /// Returns the identity with another chain after its own certificate, or this identity if OpenSSL does not accept the
  /// chain. The result does not follow files.
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

  /// A human-readable description.
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
