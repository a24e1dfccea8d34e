import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport

/// The exit status of the command. If curl has a number for a failure, the status is that number.
package enum ExitStatus: Int32, CaseIterable, Sendable {
  case success = 0, unsupportedProtocol, usage, malformedURL
  case proxyUnresolved = 5, resolutionFailed, connectFailed, weirdReply, partialBody = 18
  case httpError = 22, writeFailed, readFailed = 26, outOfResources, timedOut, rangeRefused = 33
  case tlsFailed = 35, resumeFailed, defect = 43, localEndUnusable = 45, tooManyRedirects = 47, emptyReply = 52
  case sendFailed = 55, receiveFailed, clientCertificateProblem = 58, certificateUntrusted = 60, codingBroken
  case rootsUnreadable = 77, pinMismatch = 90, revocationStatus
  case proxyHandshakeFailed = 97, clientCertificateRequired
  case foreignNetworking = 110, networkingUnknown, closedWithError, transfersFailed, checksumWrong
  /// A signal has cancelled the command.
  case hungUp = 129, interrupted = 130, terminated = 143

  /// The status of a command that the signal of this number has cancelled.
  package static func signal(_ number: Int32) -> Self { Self(rawValue: 128 + number) ?? .interrupted }

  /// The text of `larkspur help exit-status`.
  package var meaning: String {
    switch self {
    case .success: "The response was received to its end, whatever its status. (`larkspur check`: nothing was found.)"
    case .unsupportedProtocol: "The scheme is not one of the command's, or the response is not of HTTP/1."
    case .usage: "The command line is wrong, or asks for a request that may not be sent."
    case .malformedURL: "The URL is malformed."
    case .proxyUnresolved: "The proxy's name could not be looked up, or what names it makes no sense."
    case .resolutionFailed: "The host's name could not be looked up."
    case .connectFailed: "None of the host's (or the proxy's) addresses took the connection."
    case .weirdReply:
      "The fields of the response break the rules of HTTP/1.1, or are not those of a WebSocket or an event stream."
    case .partialBody: "The connection ended inside the response: behind its status line, or in the body."
    case .httpError:
      "With --fail, --fail-with-body, --resume or in pieces: the status is an error. (socket, events: not 101 or 200.)"
    case .writeFailed: "The output could not be written. Silent when it is a pipe whose reader is gone."
    case .readFailed: "A file of -d, --json, -F or -b, a program to check, or the input of socket could not be read."
    case .outOfResources: "No memory or no descriptors are left."
    case .timedOut:
      "The time of --connect-timeout, --max-time or --lowest-rate was up (socket: that of a ping or a Close)."
    case .rangeRefused: "--resume: the server sends the whole only. The file stays as it was."
    case .tlsFailed: "The two sides could not agree on TLS, or the server broke its rules."
    case .resumeFailed:
      "--resume, or in pieces: the server has another number of bytes than the file, or sends others than were wanted."
    case .defect: "A defect of larkspur's."
    case .localEndUnusable: "No connection can begin at the interface or the address of --interface."
    case .tooManyRedirects: "-L: more redirections than --max-redirs allows."
    case .emptyReply: "The server closed the connection before the status line of the response was complete."
    case .sendFailed: "The connection broke while the request was sent."
    case .receiveFailed:
      "The connection broke, something is too large, chunks or frames break the rules, or an HTTP proxy made no tunnel."
    case .clientCertificateProblem: "The client certificate could not be read, or the server refused it."
    case .certificateUntrusted: "The server's certificate is not trusted."
    case .codingBroken: "The transfer coding is unknown, or with --compressed the content cannot be decompressed."
    case .rootsUnreadable: "The file of --cacert, or the system's roots, could not be read."
    case .pinMismatch: "None of the keys of --pin is in the server's verified chain."
    case .revocationStatus: "What the server says about its certificate's revocation is missing or not valid."
    case .proxyHandshakeFailed: "A SOCKS proxy refused the connection, or broke the rules."
    case .clientCertificateRequired: "The server wants a client certificate."
    case .foreignNetworking:
      "check: the toolchain's FoundationNetworking or libcurl is in a program, or a target is stale."
    case .networkingUnknown:
      "check: a stripped program, a build folder that cannot be read, or the times in it are inconclusive."
    case .closedWithError: "socket: the server closed the WebSocket with another code than 1000, 1001 or none."
    case .transfersFailed: "transfers: the service did not carry the command out, or runs already."
    case .checksumWrong: "The bytes do not have the checksum, or the file of --checksum-from has none for the file."
    case .hungUp: "Ended by SIGHUP."
    case .interrupted: "Ended by SIGINT (Ctrl-C)."
    case .terminated: "Ended by SIGTERM."
    }
  }

  package init(_ error: TransportError) {
    self =
      switch error {
      case .resolutionFailed: .resolutionFailed
      case .connectFailed: .connectFailed
      case .localEndpointUnusable: .localEndUnusable
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
      // The command reads and writes its files itself, so the transport has no body that could fail.
      case .bodyFailed, .internalInconsistency, .localMisuse: .defect
      }
  }

  /// Maps to the numbers that curl 7.88.1 exits with. Each limit has the number of curl's limit for heads.
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

  /// A request that failed has the status of its error.
  package init(_ error: DownloadError) {
    self =
      switch error.code {
      // Of a plan that was checked only the destination can be wrong.
      case .invalidPlan, .inUse, .diskFull, .disk: .writeFailed
      case .status: .httpError
      case .tooSlow: .timedOut
      case .requestFailed: (error.underlying as? URLError).map { Self($0) } ?? .receiveFailed
      case .notResumable: .rangeRefused
      case .size, .changing: .resumeFailed
      case .badResponse: .weirdReply
      case .checksum: .checksumWrong
      // As of a transport, only a signal cancels.
      case .cancelled: .signal(2)
      }
  }

  /// A failure of the transport has the status of the transport's error. All others depend on their code.
  package init(_ error: URLError) {
    if let beneath = error.transportError {
      self = ExitStatus(beneath)
      return
    }
    self =
      switch error.code {
      case .unsupportedURL: .unsupportedProtocol
      case .badURL: .malformedURL
      case .cannotConnectToHost, .notConnectedToInternet: .connectFailed
      case .timedOut: .timedOut
      case .cannotDecodeContentData, .cannotDecodeRawData: .codingBroken
      case .httpTooManyRedirects: .tooManyRedirects
      case .redirectToNonExistentLocation, .badServerResponse: .weirdReply
      case .requestBodyStreamExhausted, .fileDoesNotExist, .noPermissionsToReadFile, .cannotOpenFile: .readFailed
      case .resourceUnavailable: .outOfResources
      case .networkConnectionLost, .dataLengthExceedsMaximum: .receiveFailed
      default: .defect
      }
  }
}
