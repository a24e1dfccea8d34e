import Foundation
import LarkspurTLS

/// Failures of a chain that a program has decided to ignore, for one certificate of a server: the content of the data of
/// ``SecTrustCopyExceptions(_:)``.
struct TrustExceptions: Codable, Hashable, Sendable {
  /// A failure as OpenSSL reports it.
  struct Failure: Codable, Hashable, Sendable {
    var code: Int
    var depth: Int
  }

  /// SHA-256 of the server's own certificate.
  var certificate: Data
  var failures: Set<Failure>
}

extension ServerTrust.Settings {
  /// Changes the settings so that the next evaluation does not find this failure again.
  ///
  /// - Parameters:
  ///   - result: The failure.
  ///   - leaf: The server's own certificate.
  /// - Returns: `false` if the failure cannot be ignored: a wrong signature, a weak key, a revocation.
  mutating func ignore(_ result: ServerTrust.TrustResult, of leaf: TLSCertificate) -> Bool {
    switch result.problem {
    case .wrongHost:
      policies = (policies ?? []).filter { $0.host == nil } + [SecPolicyCreateBasicX509()]
    case .expired where result.depth == 0, .notYetValid where result.depth == 0:
      // A moment within the certificate's validity.
      date = leaf.notValidBefore + leaf.notValidAfter.timeIntervalSince(leaf.notValidBefore) / 2
    case .untrustedRoot, .selfSigned, .expired, .notYetValid:
      // The chain ends at the server's own certificate.
      (anchors, keepsRoots) = ([leaf], false)
    default: return false
    }
    return true
  }
}
