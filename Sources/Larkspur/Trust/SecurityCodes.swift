import Foundation
import LarkspurTLS

// Codes of Darwin's Security framework, with its numbers (SecBase.h, SecTrust.h).

/// `errSecSuccess` or another code of Darwin's.
public typealias OSStatus = Int32

/// The call has done what it was asked.
public let errSecSuccess: OSStatus = 0
/// An argument is of no use.
public let errSecParam: OSStatus = -50
/// There is no memory for the roots, and so nothing can be evaluated.
public let errSecTrustNotAvailable: OSStatus = -25245
/// The certificate is for another host.
public let errSecHostNameMismatch: OSStatus = -67602
/// Nothing valid is known about the certificate's revocation, and something has to be.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67635
/// A signature is wrong.
public let errSecInvalidSignature: OSStatus = -67688
/// A key is too short.
public let errSecUnsupportedKeySize: OSStatus = -67735
/// A certificate has expired.
public let errSecCertificateExpired: OSStatus = -67818
/// A certificate is not valid yet.
public let errSecCertificateNotValidYet: OSStatus = -67819
/// A certificate has been revoked.
public let errSecCertificateRevoked: OSStatus = -67820
/// The chain leads to no root that is trusted, or breaks another rule.
public let errSecNotTrusted: OSStatus = -67843

/// What an evaluation came to.
public enum SecTrustResultType: UInt32, Sendable {
  /// Nothing has been evaluated since the trust was made or a setting was changed.
  case invalid = 0
  /// The user trusts the chain. No user is asked here, and so no evaluation has this result.
  case proceed = 1
  /// The user does not trust the chain. No evaluation has this result.
  case deny = 3
  /// The chain is good.
  case unspecified = 4
  /// The chain is not good by these settings, and might be by others: another date, host or root.
  case recoverableTrustFailure = 5
  /// The chain is not good by any settings.
  case fatalTrustFailure = 6
  /// The evaluation failed for another reason. No evaluation has this result: each failure is one of the chain's.
  case otherError = 7
}

extension ServerTrust.TrustResult {
  private var problem: TLSError.Problem? {
    VerificationResult(code: Int32(truncatingIfNeeded: code), depth: depth).error?.problem
  }

  var type: SecTrustResultType {
    switch problem {
    case nil: .unspecified
    case .revoked, .badSignature, .weakKey, .weakDigest: .fatalTrustFailure
    default: .recoverableTrustFailure
    }
  }

  var status: OSStatus {
    switch problem {
    case nil: errSecSuccess
    case .expired: errSecCertificateExpired
    case .notYetValid: errSecCertificateNotValidYet
    case .wrongHost: errSecHostNameMismatch
    case .revoked: errSecCertificateRevoked
    case .revocationUnknown: errSecIncompleteCertRevocationCheck
    case .badSignature: errSecInvalidSignature
    case .weakKey, .keyTooLarge: errSecUnsupportedKeySize
    default: errSecNotTrusted
    }
  }

  /// The result as Darwin's functions return it, or `nil` for a good chain.
  var error: CFError? {
    guard !isTrusted else { return nil }
    return NSError(
      domain: NSOSStatusErrorDomain, code: Int(status),
      userInfo: [NSLocalizedDescriptionKey: description, NSUnderlyingErrorKey: self])
  }
}
