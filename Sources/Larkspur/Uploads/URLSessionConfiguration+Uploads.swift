import LarkspurHTTP

/// A setting of Larkspur's own, which Darwin does not have.
extension URLSessionConfiguration {
  /// The version of the protocol of resumable uploads, draft-ietf-httpbis-resumable-upload.
  public enum ResumableUploadDraft: Sendable {
    /// No upload can be resumed, and no request has a field of the protocol.
    case none
    /// Draft 01 (`Upload-Draft-Interop-Version: 3`), which Darwin speaks in iOS 17 and macOS 14.
    case draft01
    /// Drafts 09 to 12 (`Upload-Draft-Interop-Version: 8`), the latest.
    case draft12
  }

  /// The version that upload tasks from files offer to the server. The default is `draft12`.
  ///
  /// Client and server cannot negotiate the version: a server of another version takes the upload as any other, and the
  /// upload cannot be resumed. Upload tasks from data or a stream offer no version. See <doc:Resuming>.
  public var resumableUploadDraft: ResumableUploadDraft {
    get { storage.resumableUploadDraft }
    set { storage.resumableUploadDraft = newValue }
  }
}

extension URLSessionConfiguration.ResumableUploadDraft {
  var version: ResumableUploadVersion? {
    switch self {
    case .none: nil
    case .draft01: .interop3
    case .draft12: .interop8
    }
  }
}
