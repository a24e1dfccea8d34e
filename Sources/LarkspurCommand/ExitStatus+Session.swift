import Foundation
import Larkspur

extension ExitStatus {
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
