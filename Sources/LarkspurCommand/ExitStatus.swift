import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport

/// The exit status of the command. If curl has a number for a failure, the status is that number.
package struct ExitStatus: Hashable, Sendable {
  package let rawValue: Int32
  /// The text of `larkspur help exit-status`.
  package let meaning: String

  private init(_ rawValue: Int32, _ meaning: String) {
    self.rawValue = rawValue
    self.meaning = meaning
  }

  package static let success = Self(
    0, "The response was received to its end, whatever its status. (`larkspur check`: nothing was found.)")
  package static let unsupportedProtocol = Self(
    1, "The scheme is not one of the command's, or the response is not of HTTP/1.")
  package static let usage = Self(2, "The command line is wrong, or asks for a request that may not be sent.")
  package static let malformedURL = Self(3, "The URL is malformed.")
  package static let proxyUnresolved = Self(
    5, "The proxy's name could not be looked up, or what names it makes no sense.")
  package static let resolutionFailed = Self(6, "The host's name could not be looked up.")
  package static let connectFailed = Self(7, "None of the host's (or the proxy's) addresses took the connection.")
  package static let weirdReply = Self(
    8, "The fields of the response break the rules of HTTP/1.1, or are not those of a WebSocket or an event stream.")
  package static let partialBody = Self(
    18, "The connection ended inside the response: behind its status line, or in the body.")
  package static let httpError = Self(
    22,
    "With --fail, --fail-with-body or --resume: the status is 400 or more. (socket, events: another than 101 or 200.)")
  package static let writeFailed = Self(
    23, "The output could not be written. Silent when it is a pipe whose reader is gone.")
  package static let readFailed = Self(
    26, "A file of -d, --json, -F or -b, a program to check, or the input of socket could not be read.")
  package static let outOfResources = Self(27, "No memory or no descriptors are left.")
  package static let timedOut = Self(
    28, "The time of --connect-timeout or --max-time was up. (socket: a ping or the Close was not answered.)")
  package static let rangeRefused = Self(33, "--resume: the server sends the whole only. The file stays as it was.")
  package static let tlsFailed = Self(35, "The two sides could not agree on TLS, or the server broke its rules.")
  package static let resumeFailed = Self(
    36, "--resume: the server has another number of bytes than the file, or sends others than were wanted.")
  package static let defect = Self(43, "A defect of larkspur's.")
  package static let tooManyRedirects = Self(47, "-L: more redirections than --max-redirs allows.")
  package static let emptyReply = Self(
    52, "The server closed the connection before the status line of the response was complete.")
  package static let sendFailed = Self(55, "The connection broke while the request was sent.")
  package static let receiveFailed = Self(
    56,
    "The connection broke, something is too large, chunks or frames break the rules, or an HTTP proxy made no tunnel.")
  package static let clientCertificateProblem = Self(
    58, "The client certificate could not be read, or the server refused it.")
  package static let certificateUntrusted = Self(60, "The server's certificate is not to be trusted.")
  package static let codingBroken = Self(
    61, "The transfer coding is unknown, or with --compressed the content cannot be decompressed.")
  package static let rootsUnreadable = Self(77, "The file of --cacert, or the system's roots, could not be read.")
  package static let pinMismatch = Self(90, "None of the keys of --pin is in the server's verified chain.")
  package static let revocationStatus = Self(
    91, "What the server says about its certificate's revocation is missing or not valid.")
  package static let proxyHandshakeFailed = Self(97, "A SOCKS proxy refused the connection, or broke the rules.")
  package static let clientCertificateRequired = Self(98, "The server wants a client certificate.")
  package static let foreignNetworking = Self(
    110, "check: the toolchain's FoundationNetworking or libcurl is in a program, or a target is stale.")
  package static let networkingUnknown = Self(
    111, "check: a stripped program, a build folder that cannot be read, or the times in it do not tell.")
  package static let closedWithError = Self(
    112, "socket: the server closed the WebSocket with another code than 1000, 1001 or none.")
  package static let transfersFailed = Self(113, "transfers: the service did not do what was asked, or runs already.")

  /// Cancelled by the signal of this number.
  package static func signal(_ number: Int32) -> Self { Self(128 + number, "") }

  /// All statuses but the signals, in the order of their numbers.
  package static let all: [ExitStatus] = [
    .success, .unsupportedProtocol, .usage, .malformedURL, .proxyUnresolved, .resolutionFailed, .connectFailed,
    .weirdReply, .partialBody, .httpError, .writeFailed, .readFailed, .outOfResources, .timedOut, .rangeRefused,
    .tlsFailed, .resumeFailed, .defect, .tooManyRedirects, .emptyReply, .sendFailed, .receiveFailed,
    .clientCertificateProblem, .certificateUntrusted, .codingBroken, .rootsUnreadable, .pinMismatch,
    .revocationStatus, .proxyHandshakeFailed, .clientCertificateRequired, .foreignNetworking, .networkingUnknown,
    .closedWithError, .transfersFailed,
  ]

  package init(_ error: TransportError) {
    self =
      switch error {
      case .resolutionFailed: .resolutionFailed
      case .connectFailed, .localEndpointUnusable: .connectFailed
      case .optionInvalid: .usage
      case .timedOut: .timedOut
      // Only a signal cancels, and `MainLoop` then exits with that signal's status.
      case .cancelled: .signal(2)
      case .connectionLost(.sending, _): .sendFailed
      case .connectionLost: .receiveFailed
      case .connectionClosed: .emptyReply
      case .badResponse(let error): ExitStatus(error)
      case .tls(let error): ExitStatus(error)
      case .proxy(let error): ExitStatus(error)
      case .unavailable, .tooManyWaiting: .outOfResources
      // The command reads and writes its files itself, so the transport has no body of its own that could fail.
      case .bodyFailed, .internalInconsistency, .localMisuse: .defect
      }
  }

  /// Maps to the numbers that curl 7.88.1 exits with. Each limit has the number of curl's own limit for heads.
  private init(_ error: ResponseError) {
    self =
      switch error {
      case .notHTTP, .versionUnsupported, .statusInvalid: .unsupportedProtocol
      case .truncated(.beforeHead), .truncated(.statusLine): .emptyReply
      case .truncated: .partialBody
      case .transferCodingUnsupported: .codingBroken
      case .headTooLarge, .fieldLineTooLong, .tooManyFields, .tooManyInterimResponses, .trailersTooLarge,
        .chunkSizeInvalid, .chunkSizeTooLarge, .chunkExtensionInvalid, .chunkExtensionsTooLarge, .chunkEndMissing:
        .receiveFailed
      case .reasonInvalid, .bareCR, .bareLF, .whitespaceBeforeFirstField, .fieldNameInvalid, .whitespaceInFieldName,
        .fieldValueInvalid, .contentLengthInvalid, .contentLengthConflicting, .upgradeUnsolicited, .unsolicitedBytes:
        .weirdReply
      }
  }

  private init(_ error: ProxyError) {
    self =
      switch error.failure {
      case .transport(let error) where ExitStatus(error) == .resolutionFailed: .proxyUnresolved
      case .transport(.connectionLost), .transport(.connectionClosed), .transport(.badResponse):
        error.proxy.hasPrefix("socks") ? .proxyHandshakeFailed : .receiveFailed
      case .transport(let error): ExitStatus(error)
      case .socks: .proxyHandshakeFailed
      case .tunnel: .receiveFailed
      }
  }

  package init(_ error: TLSError) {
    self =
      switch error.problem {
      case .alert where error.isAfterHandshake, .protocolViolation where error.isAfterHandshake: .receiveFailed
      case .untrustedRoot, .selfSigned, .expired, .notYetValid, .wrongHost, .revoked, .badSignature, .weakKey,
        .keyTooLarge, .weakDigest, .certificateInvalid, .refusedByCaller:
        .certificateUntrusted
      case .pinMismatch: .pinMismatch
      case .revocationUnknown: .revocationStatus
      case .protocolVersion, .noSharedCipher, .notTLS, .applicationProtocol, .noSharedProtocol, .alert,
        .protocolViolation, .connectionLost:
        .tlsFailed
      case .truncated: .partialBody
      case .handshakeTimedOut: .timedOut
      case .clientCertificateRequired: .clientCertificateRequired
      case .clientCertificateRefused, .identityUnreadable, .passwordWrong, .encryptionUnsupported, .keyMismatch:
        .clientCertificateProblem
      // No host can have the name. Without TLS its look-up fails as well.
      case .hostInvalid: .resolutionFailed
      case .trustStoreUnreadable, .revocationListUnreadable: .rootsUnreadable
      case .keyLogUnwritable: .writeFailed
      case .outOfMemory: .outOfResources
      }
  }
}
