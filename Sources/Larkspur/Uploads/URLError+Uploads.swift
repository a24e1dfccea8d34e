import Foundation
import LarkspurHTTP

extension UploadFailure {
  fileprivate var isLoss: Bool {
    switch self {
    case .resourceGone, .expired, .otherOrigin: true
    default: false
    }
  }
}

extension URLError {
  /// Creates the error of a resumable upload that ends without a response.
  init(_ failure: UploadFailure, url: URL?) {
    let code: URLError.Code =
      switch failure {
      case .connection: .networkConnectionLost
      case .fileChanged: .cannotOpenFile
      case .limits: .dataLengthExceedsMaximum
      case .status, .resourceGone, .noOffset, .offsetBeyondEnd, .offsetBeyondSent, .offsetDecreased, .offsetMismatch,
        .lengthMismatch, .completedTooEarly, .neverCompleted, .noLocation, .locationChanged, .redirection, .otherOrigin,
        .expired:
        .badServerResponse
      }
    self = .make(code, Self.message(of: failure), url: url, more: failure.isLoss ? [Self.lossKey: true] : [:])
  }

  /// Marks the error of an upload that can only start over.
  private static let lossKey = "LarkspurUploadIsLost"

  /// Whether the server no longer has the part of an upload that it had.
  var isOfLostUpload: Bool { userInfo[Self.lossKey] != nil }

  private static func message(of failure: UploadFailure) -> String {
    switch failure {
    case .connection: "the connection was lost"
    case .status(let status): "the upload cannot continue: the server answers with status \(status)"
    case .resourceGone(let status): "the server does not have the upload any more (status \(status))"
    case .noOffset: "the server does not tell how much of the upload it has"
    case .offsetBeyondEnd(let offset): "the server says that it has \(offset) bytes, more than the file has"
    case .offsetBeyondSent(let offset): "the server says that it has \(offset) bytes, more than were sent"
    case .offsetDecreased(let offset): "the server has lost bytes of the upload, and has \(offset)"
    case .offsetMismatch(let offset): "the server has \(offset) bytes after a successful request"
    case .lengthMismatch(let length): "the server expects a file of \(length) bytes"
    case .completedTooEarly: "the server says that the upload is complete, and has not received all bytes"
    case .neverCompleted: "the server has all bytes, and does not say that the upload is complete"
    case .limits(let limits): "the file is outside of the server's limits (\(limits.text))"
    case .noLocation: "the server has taken a part, and does not tell where the rest goes"
    case .locationChanged: "the server has named two places for one upload"
    case .redirection: "the server redirects the upload too often, or to a URL that cannot be used"
    case .otherOrigin: "the server has the upload at another origin, which the delegate has not agreed to"
    case .expired: "the time that the server keeps the upload is over"
    case .fileChanged: "the file has changed since the upload was started"
    }
  }
}
