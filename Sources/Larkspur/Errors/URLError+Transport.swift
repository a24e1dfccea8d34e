import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// Converts the transport's errors to `URLError`. This is the only conversion; the table in the documentation
/// follows it.
extension URLError {
  init(_ error: TransportError, url: URL?) {
    let code = Self.code(of: error)
    let (message, more) = (Self.message(for: error), Self.details(of: error))
    self = URLError.make(
      code, message, url: url,
      underlying: code == .cancelled
        ? nil : TransportFailure(error, Self.underlying(error) ?? Self.cfNetwork(code, message, more)),
      more: more)
  }

  /// The transport's error that this error was made from. Several transport errors share one code.
  ///
  /// - Returns: The error, or `nil` if this error does not come from the transport.
  package var transportError: TransportError? {
    (userInfo[NSUnderlyingErrorKey] as? TransportFailure)?.error
  }

  private static func code(of error: TransportError) -> Code {
    switch error {
    case .resolutionFailed: .cannotFindHost
    case .connectFailed: .cannotConnectToHost
    case .localEndpointUnusable, .optionInvalid: .cannotConnectToHost
    case .timedOut: .timedOut
    case .cancelled: .cancelled
    case .connectionLost, .connectionClosed: .networkConnectionLost
    case .tls(let error): code(of: error.problem)
    case .proxy(let error): code(of: error.failure)
    case .badResponse(let error): code(of: error)
    case .tooManyWaiting: .resourceUnavailable
    case .bodyFailed(let failure): code(of: failure)
    case .unavailable: .resourceUnavailable
    case .internalInconsistency, .localMisuse: .unknown
    }
  }

  private static func code(of problem: TLSError.Problem) -> Code {
    switch problem {
    case .expired: .serverCertificateHasBadDate
    case .notYetValid: .serverCertificateNotYetValid
    // On Darwin an unknown root has this code, too: `serverCertificateHasUnknownRoot` does not occur there.
    case .untrustedRoot, .selfSigned, .wrongHost, .revoked, .revocationUnknown, .badSignature, .weakKey, .keyTooLarge,
      .weakDigest,
      .certificateInvalid, .pinMismatch:
      .serverCertificateUntrusted
    case .refusedByCaller: .cancelled
    case .clientCertificateRequired: .clientCertificateRequired
    case .clientCertificateRefused, .identityUnreadable, .passwordWrong, .encryptionUnsupported,
      .keyMismatch:
      .clientCertificateRejected
    case .handshakeTimedOut: .timedOut
    // Without TLS such a host fails in the look-up, with this code.
    case .hostInvalid: .cannotFindHost
    case .truncated: .networkConnectionLost
    case .protocolVersion, .noSharedCipher, .notTLS, .applicationProtocol, .noSharedProtocol, .alert,
      .protocolViolation,
      .connectionLost, .trustStoreUnreadable, .revocationListUnreadable, .keyLogUnwritable, .outOfMemory:
      .secureConnectionFailed
    }
  }

  private static func code(of failure: ProxyError.Failure) -> Code {
    switch failure {
    case .transport(let error):
      switch error {
      case .timedOut: .timedOut
      case .cancelled: .cancelled
      case .resolutionFailed: .cannotFindHost
      case .tls(let cause) where cause.problem == .hostInvalid: .cannotFindHost
      default: .cannotConnectToHost
      }
    case .socks, .tunnel: .cannotConnectToHost
    }
  }

  private static func code(of error: ResponseError) -> Code {
    switch error {
    case .truncated: .networkConnectionLost
    case .headTooLarge, .fieldLineTooLong, .tooManyFields, .trailersTooLarge, .tooManyInterimResponses,
      .chunkExtensionsTooLarge:
      .dataLengthExceedsMaximum
    case .transferCodingUnsupported: .cannotDecodeContentData
    default: .cannotParseResponse
    }
  }

  private static func code(of failure: BodyFailure) -> Code {
    switch failure {
    case .fileUnwritable: .cannotWriteToFile
    case .fileUnreadable(.noSuchFile): .fileDoesNotExist
    case .fileUnreadable: .noPermissionsToReadFile
    case .fileChanged: .cannotOpenFile
    case .tooShort, .tooLong, .producerFailed, .trailersInvalid, .notWaitedFor: .requestBodyStreamExhausted
    }
  }

  private static func message(for error: TransportError) -> String {
    switch code(of: error) {
    case .cancelled: "cancelled"
    default: "\(error)"
    }
  }

  /// Returns the kernel's error number, or OpenSSL's reason.
  ///
  /// - Returns: `nil` if the error has neither.
  private static func underlying(_ error: TransportError) -> NSError? {
    if case .proxy(let error) = error, case .transport(let cause) = error.failure { return underlying(cause) }
    let number: Errno? =
      switch error {
      case .connectFailed(let attempts): attempts.last?.error
      case .connectionLost(_, let number): number
      case .unavailable(let number): number
      case .localEndpointUnusable(_, let number): number
      case .bodyFailed(.fileUnreadable(let number)), .bodyFailed(.fileUnwritable(let number)): number
      default: nil
      }
    if let number { return NSError(domain: NSPOSIXErrorDomain, code: Int(number.rawValue)) }
    if case .tls(let problem) = error {
      return NSError(
        domain: "LarkspurTLSErrorDomain", code: 0, userInfo: NSError.entries(forMessage: "\(problem)"))
    }
    return nil
  }

  private static func details(of error: TransportError) -> [String: Any] {
    switch error {
    case .proxy(let error):
      guard case .transport(let cause) = error.failure else { return [:] }
      return details(of: cause)
    case .connectFailed(let attempts):
      guard let last = attempts.last else { return [:] }
      return [
        "_kCFStreamErrorDomainKey": 1, "_kCFStreamErrorCodeKey": Int(last.error.rawValue),
        peerAddressKey: "\(last.address)",
      ]
    case .connectionLost(_, let number?):
      return ["_kCFStreamErrorDomainKey": 1, "_kCFStreamErrorCodeKey": Int(number.rawValue)]
    case .resolutionFailed: return ["_kCFStreamErrorDomainKey": 12, "_kCFStreamErrorCodeKey": 8]
    case .tls(let problem):
      var details: [String: Any] = [:]
      if let reason = problem.reason { details["LarkspurTLSReason"] = reason }
      if let trust = problem.trust { details[NSURLErrorFailingURLPeerTrustErrorKey] = ServerTrust(trust) }
      return details
    default: return [:]
    }
  }
}

/// The underlying error of a `URLError` from the transport. To programs it is an `NSError` like any other.
private final class TransportFailure: NSError, @unchecked Sendable {
  // Sendable: `error` is only written in the initializer.
  let error: TransportError

  init(_ error: TransportError, _ other: NSError) {
    self.error = error
    super.init(domain: other.domain, code: other.code, userInfo: other.userInfo)
  }

  required init?(coder: NSCoder) { nil }
}
