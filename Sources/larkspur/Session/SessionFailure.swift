import Foundation
import Larkspur

/// What a session's error means to the user. It says less than the transport's: where curl has several numbers, the one
/// that fits most often stands.
struct SessionFailure {
  let failure: CommandFailure

  init(_ error: any Error, url: URL?, hasResponse: Bool, _ settings: SessionSetUp) {
    let error = error as? URLError ?? URLError(.unknown)
    let peer = Self.peer(error.failingURL ?? url)
    if let mismatch = settings.pinning.told {
      failure = CommandFailure(.pinMismatch, "\(peer): \(mismatch)")
    } else if error.code == .cancelled {
      failure = CommandFailure(.signal(2))
    } else {
      let status = Self.status(of: error, hasResponse: hasResponse, isProxied: settings.isProxied)
      let option = status == .timedOut && settings.hasMaxTime ? " (--max-time)" : ""
      failure = CommandFailure(status, "\(peer): \(Format.visible(error.localizedDescription.utf8))\(option)")
    }
  }

  private static func peer(_ url: URL?) -> String {
    guard let url, let host = url.host(percentEncoded: true) else { return "the server" }
    let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    return "\(name):\(url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80))"
  }

  private static let cfNetwork = "kCFErrorDomainCFNetwork"

  /// Where a connection broke, the kernel's number or the TLS failure is beneath.
  private static func endedInOrder(_ error: URLError) -> Bool {
    (error.userInfo[NSUnderlyingErrorKey] as? NSError)?.domain ?? cfNetwork == cfNetwork
  }

  static func status(of error: URLError, hasResponse: Bool, isProxied: Bool) -> ExitStatus {
    switch error.code {
    case .unsupportedURL: .unsupportedProtocol
    case .badURL: .malformedURL
    case .cannotFindHost, .dnsLookupFailed: isProxied ? .proxyUnresolved : .resolutionFailed
    case .cannotConnectToHost, .notConnectedToInternet: .connectFailed
    case .timedOut: .timedOut
    case .networkConnectionLost:
      hasResponse ? .partialBody : endedInOrder(error) ? .emptyReply : .receiveFailed
    case .badServerResponse, .cannotParseResponse, .dataLengthExceedsMaximum: .weirdReply
    case .cannotDecodeContentData, .cannotDecodeRawData: .codingBroken
    case .httpTooManyRedirects: .tooManyRedirects
    case .redirectToNonExistentLocation: .weirdReply
    case .secureConnectionFailed: .tlsFailed
    case .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
      .serverCertificateUntrusted:
      .certificateUntrusted
    case .clientCertificateRequired: .clientCertificateRequired
    case .clientCertificateRejected: .clientCertificateProblem
    case .requestBodyStreamExhausted, .fileDoesNotExist, .noPermissionsToReadFile, .cannotOpenFile: .readFailed
    case .resourceUnavailable: .outOfResources
    default: .defect
    }
  }
}
