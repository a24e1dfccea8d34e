import Foundation
import LarkspurTLS

// Codes of Darwin's Security framework, with its numbers (SecBase.h, SecTrust.h).

/// A status code of Darwin's, such as `errSecSuccess`.
public typealias OSStatus = Int32

/// The call succeeded.
public let errSecSuccess: OSStatus = 0
/// An argument is invalid.
public let errSecParam: OSStatus = -50
/// There is not enough memory for the roots, so that nothing can be evaluated.
public let errSecTrustNotAvailable: OSStatus = -25245
/// The certificate is for another host.
public let errSecHostNameMismatch: OSStatus = -67602
/// Revocation has to be checked, and there is no valid information about it.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67635
/// A signature is wrong.
public let errSecInvalidSignature: OSStatus = -67688
/// A key is too short or too large.
public let errSecUnsupportedKeySize: OSStatus = -67735
/// A certificate has expired.
public let errSecCertificateExpired: OSStatus = -67818
/// A certificate is not valid yet.
public let errSecCertificateNotValidYet: OSStatus = -67819
/// A certificate has been revoked.
public let errSecCertificateRevoked: OSStatus = -67820
/// The chain leads to no root that is trusted, or breaks another rule.
public let errSecNotTrusted: OSStatus = -67843

/// The result of an evaluation.
public enum SecTrustResultType: UInt32, Sendable {
  /// The trust has not been evaluated since it was made or a setting was changed.
  case invalid = 0
  /// The program has decided to ignore the chain's failures: see `SecTrustSetExceptions`.
  case proceed = 1
  /// The user does not trust the chain. No evaluation has this result.
  case deny = 3
  /// The chain is good.
  case unspecified = 4
  /// The chain is not good with these settings, but may be with others: another date, host or root.
  case recoverableTrustFailure = 5
  /// The chain is not good with any settings.
  case fatalTrustFailure = 6
  /// The evaluation failed for another reason. No evaluation has this result, because each failure is one of the
  /// chain's.
  case otherError = 7
}

extension ServerTrust.TrustResult {
  var problem: TLSError.Problem? {
    VerificationResult(code: Int32(truncatingIfNeeded: code), depth: depth).error?.problem
  }

  var type: SecTrustResultType {
    switch problem {
    case nil: hasExceptions ? .proceed : .unspecified
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

  /// The error that Darwin's functions return for this result, or `nil` if the chain is good.
  var error: CFError? {
    guard !isTrusted else { return nil }
    return NSError(
      domain: NSOSStatusErrorDomain, code: Int(status),
      userInfo: NSError.entries(forMessage: description).merging([NSUnderlyingErrorKey: self]) { $1 })
  }
}
