import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport

/// The exit status of the command. If curl has a number for a failure, the status is that number.
package enum ExitStatus: Hashable, Sendable {
  case success
  case unsupportedProtocol
  case usage
  case malformedURL
  case proxyUnresolved
  case resolutionFailed
  case connectFailed
  case weirdReply
  case partialBody
  case httpError
  case writeFailed
  case readFailed
  case rangeRefused
  case outOfResources
  case timedOut
  case tlsFailed
  case resumeFailed
  case defect
  case tooManyRedirects
  case emptyReply
  case sendFailed
  case receiveFailed
  case clientCertificateProblem
  case certificateUntrusted
  case codingBroken
  case rootsUnreadable
  case pinMismatch
  case revocationStatus
  case proxyHandshakeFailed
  case clientCertificateRequired
  /// A program contains the toolchain's FoundationNetworking or curl's library.
  case foreignNetworking
  /// A program does not show what it contains.
  case networkingUnknown
  /// The server closed a WebSocket with a code that stands for a failure.
  case closedWithError
  /// The transfer service did not do what was asked.
  case transfersFailed
  /// Cancelled by the signal of this number.
  case signal(Int32)

  package var rawValue: Int32 {
    switch self {
    case .success: 0
    case .unsupportedProtocol: 1
    case .usage: 2
    case .malformedURL: 3
    case .proxyUnresolved: 5
    case .resolutionFailed: 6
    case .connectFailed: 7
    case .weirdReply: 8
    case .partialBody: 18
    case .httpError: 22
    case .writeFailed: 23
    case .readFailed: 26
    case .outOfResources: 27
    case .timedOut: 28
    case .rangeRefused: 33
    case .tlsFailed: 35
    case .resumeFailed: 36
    case .defect: 43
    case .tooManyRedirects: 47
    case .emptyReply: 52
    case .sendFailed: 55
    case .receiveFailed: 56
    case .clientCertificateProblem: 58
    case .certificateUntrusted: 60
    case .codingBroken: 61
    case .rootsUnreadable: 77
    case .pinMismatch: 90
    case .revocationStatus: 91
    case .proxyHandshakeFailed: 97
    case .clientCertificateRequired: 98
    case .foreignNetworking: 110
    case .networkingUnknown: 111
    case .closedWithError: 112
    case .transfersFailed: 113
    case .signal(let number): 128 + number
    }
  }

  /// All statuses but the signals, in the order of their numbers, with the text of `larkspur help exit-status`.
  package static let explained: [(status: ExitStatus, meaning: String)] = [
    (.success, "The response was received to its end, whatever its status. (`larkspur check`: nothing was found.)"),
    (.unsupportedProtocol, "The scheme is not one of the command's, or the response is not of HTTP/1."),
    (.usage, "The command line is wrong, or asks for a request that may not be sent."),
    (.malformedURL, "The URL is malformed."),
    (.proxyUnresolved, "The proxy's name could not be looked up, or what names it makes no sense."),
    (.resolutionFailed, "The host's name could not be looked up."),
    (.connectFailed, "None of the host's (or the proxy's) addresses took the connection."),
    (
      .weirdReply,
      "The fields of the response break the rules of HTTP/1.1, or are not those of a WebSocket or an event stream."
    ),
    (.partialBody, "The connection ended inside the response: behind its status line, or in the body."),
    (
      .httpError,
      "With --fail, --fail-with-body or --resume: the status is 400 or more. (socket, events: another than 101 or 200.)"
    ),
    (.writeFailed, "The output could not be written. Silent when it is a pipe whose reader is gone."),
    (
      .readFailed,
      "A file of -d, --json, -F or -b, a program to check, or the input of socket could not be read."
    ),
    (.outOfResources, "No memory or no descriptors are left."),
    (.timedOut, "The time of --connect-timeout or --max-time was up. (socket: a ping or the Close was not answered.)"),
    (.rangeRefused, "--resume: the server sends the whole only. The file stays as it was."),
    (.tlsFailed, "The two sides could not agree on TLS, or the server broke its rules."),
    (
      .resumeFailed, "--resume: the server has another number of bytes than the file, or sends others than were wanted."
    ),
    (.defect, "A defect of larkspur's."),
    (.tooManyRedirects, "-L: more redirections than --max-redirs allows."),
    (.emptyReply, "The server closed the connection before the status line of the response was complete."),
    (.sendFailed, "The connection broke while the request was sent."),
    (
      .receiveFailed,
      "The connection broke, something is too large, chunks or frames break the rules, or an HTTP proxy made no tunnel."
    ),
    (.clientCertificateProblem, "The client certificate could not be read, or the server refused it."),
    (.certificateUntrusted, "The server's certificate is not to be trusted."),
    (.codingBroken, "The transfer coding is unknown, or with --compressed the content cannot be decompressed."),
    (.rootsUnreadable, "The file of --cacert, or the system's roots, could not be read."),
    (.pinMismatch, "None of the keys of --pin is in the server's verified chain."),
    (.revocationStatus, "What the server says about its certificate's revocation is missing or not valid."),
    (.proxyHandshakeFailed, "A SOCKS proxy refused the connection, or broke the rules."),
    (.clientCertificateRequired, "The server wants a client certificate."),
    (
      .foreignNetworking,
      "check: the toolchain's FoundationNetworking or libcurl is in a program, or a target is stale."
    ),
    (
      .networkingUnknown,
      "check: a stripped program, a build folder that cannot be read, or the times in it do not tell."
    ),
    (.closedWithError, "socket: the server closed the WebSocket with another code than 1000, 1001 or none."),
    (.transfersFailed, "transfers: the service did not do what was asked, or runs already."),
  ]

  package init(_ error: TransportError) {
    self =
      switch error {
      case .resolutionFailed: .resolutionFailed
      case .connectFailed, .localEndpointUnusable: .connectFailed
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
        .keyTooLarge,
        .weakDigest,
        .certificateInvalid, .refusedByCaller:
        .certificateUntrusted
      case .pinMismatch: .pinMismatch
      case .revocationUnknown: .revocationStatus
      case .protocolVersion, .noSharedCipher, .notTLS, .applicationProtocol, .noSharedProtocol, .alert,
        .protocolViolation,
        .connectionLost:
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
