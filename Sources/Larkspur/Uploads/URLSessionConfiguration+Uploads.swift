import LarkspurHTTP

/// The version of the protocol of resumable uploads, draft-ietf-httpbis-resumable-upload.
public enum URLSessionResumableUploadDraft: Sendable {
  /// No upload can be resumed, and no request has a field of the protocol.
  case none
  /// Draft 01 (`Upload-Draft-Interop-Version: 3`), which Darwin speaks in iOS 17 and macOS 14.
  case draft01
  /// Drafts 09 to 11 (`Upload-Draft-Interop-Version: 8`).
  case draft11
  /// Draft 12 (`Upload-Draft-Interop-Version: 9`).
  case draft12
  /// Draft 13 (`Upload-Draft-Interop-Version: 10`), the latest as of October 2026.
  case draft13
}

/// A setting that Darwin does not have.
extension URLSessionConfiguration {
  /// The version that upload tasks from files offer to the server. The default is `draft11`.
  ///
  /// Client and server cannot negotiate the version: a server of another version takes the upload as any other, and the
  /// upload cannot be resumed. Upload tasks from data or a stream offer no version. See <doc:Resuming>.
  public var resumableUploadDraft: ResumableUploadDraft {
    get { ResumableUploadDraft(storage.settings.resumableUploadVersion) }
    set { storage.settings.resumableUploadVersion = newValue.version }
  }
}

extension URLSessionResumableUploadDraft {
  fileprivate init(_ version: ResumableUploadVersion?) {
    switch version {
    case nil: self = .none
    case .interop3: self = .draft01
    case .interop8: self = .draft11
    case .interop9: self = .draft12
    case .interop10: self = .draft13
    }
  }

  fileprivate var version: ResumableUploadVersion? {
    switch self {
    case .none: nil
    case .draft01: .interop3
    case .draft11: .interop8
    case .draft12: .interop9
    case .draft13: .interop10
    }
  }
}
