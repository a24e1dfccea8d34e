extension TestServer {
  /// The choices of a server that takes resumable uploads (draft-ietf-httpbis-resumable-upload, "the draft"), and its
  /// faults.
  ///
  /// ```swift
  /// var upload = TestServer.ResumableUpload()
  /// upload.faults = [.cut(afterBytes: 1000), .status(503), .none, .loseResponse]
  /// let uploads = server.resumableUploads("/files", upload)
  /// ```
  ///
  /// The server checks the client's requests strictly, and answers a wrong one with 400. A request without a version,
  /// or with one that the server does not speak, is an upload without resumption.
  public struct ResumableUpload: Hashable, Sendable {
    /// The value of `Upload-Draft-Interop-Version`.
    public enum Version: Int, Hashable, Sendable, CaseIterable {
      /// Draft 01, with `Upload-Incomplete`.
      case interop3 = 3
      /// Drafts 09 to 11, with `Upload-Complete`, `Upload-Length` and `Upload-Limit`.
      case interop8 = 8
      /// Draft 12.
      case interop9 = 9
      /// Draft 13. Responses to HEAD have `Upload-Offset` and `Upload-Limit` only.
      case interop10 = 10

      var hasLimits: Bool { self != .interop3 }
    }

    /// The members of `Upload-Limit`. `nil` is no limit.
    public struct Limits: Hashable, Sendable {
      /// Maximum size of the whole upload in bytes.
      public var maxSize: Int?
      /// Minimum size of the whole upload in bytes.
      public var minSize: Int?
      /// Maximum size in bytes of the content of one request.
      public var maxAppendSize: Int?
      /// Minimum size in bytes of the content of a request that does not complete the upload.
      public var minAppendSize: Int?
      /// Lifetime in seconds. The server announces it, and does not end uploads by itself.
      public var maxAge: Int?

      /// Creates limits that limit nothing.
      public init() {}

      /// The value of `Upload-Limit`, or `nil` if there is no limit.
      var text: String? {
        let members = [
          ("max-size", maxSize), ("min-size", minSize), ("max-append-size", maxAppendSize),
          ("min-append-size", minAppendSize), ("max-age", maxAge),
        ]
        let set = members.compactMap { name, value in value.map { "\(name)=\($0)" } }
        return set.isEmpty ? nil : set.joined(separator: ", ")
      }
    }

    /// A departure from the draft or from good luck, in the answer to one request.
    public enum Fault: Hashable, Sendable {
      /// No fault: the request is answered as the draft says.
      case none
      /// Resets the connection after this number of bytes of the content, which are kept.
      case cut(afterBytes: Int)
      /// Closes the connection in order after this number of bytes of the content, which are kept.
      case close(afterBytes: Int)
      /// Keeps the content, and resets the connection in place of the response.
      case loseResponse
      /// Keeps the content, and does not answer.
      case hang
      /// Answers with this status before the content is read. A creation is announced first.
      case status(Int, retryAfter: Int? = nil)
      /// Sends this offset in place of the right one.
      case offset(Int)
      /// Does not send the offset.
      case noOffset
      /// Sends this completeness in place of the right one.
      case complete(Bool)
      /// Drops the upload, and answers with this status, such as 404 or 410.
      case forget(status: Int)
      /// Drops the last bytes, this many of them, before the request is answered: the offset goes back.
      case lose(bytes: Int)
      /// Answers with a 409 and the right offset, whatever the request says.
      case conflict
      /// Answers with this status, such as 307 or 308, and this `Location`.
      case redirect(status: Int, to: String)
      /// Sets a field of the response and of the 104, such as `Location` or `Upload-Limit`.
      case field(String, String)
    }

    /// The versions that the server speaks.
    public var versions = Set(Version.allCases)
    /// Whether the server sends a 104 that names the upload resource.
    public var announces = true
    /// The version that the 104 names, or `nil` for that of the request.
    public var announcedVersion: Int?
    /// The number of bytes of content after each of which the server sends a 104 with the offset, or `nil` for none.
    /// Version 3 has no such responses.
    public var progressBytes: Int?
    /// The limits that `Upload-Limit` announces.
    public var limits = Limits()
    /// Whether the server refuses requests outside of the limits.
    public var enforcesLimits = true
    /// The faults of the requests to come, one for each in order.
    public var faults: [Fault] = []

    /// Creates a server of all versions, without limits and faults.
    public init() {}
  }

  /// One upload as the server has received it.
  public struct Upload: Hashable, Sendable {
    /// The number of the upload resource: 1 for the first one.
    public var number: Int
    /// The method of the request that started the upload.
    public var method: String
    /// The fields of that request.
    public var fields: Fields
    /// The version, or `nil` for an upload without resumption.
    public var version: ResumableUpload.Version?
    /// The bytes that the server has kept, each once.
    public var bytes: [UInt8] = []
    /// The size that the client has announced.
    public var length: Int?
    /// Whether the server has all bytes, and the client has said that these are all.
    public var isComplete = false
    /// Whether the upload resource exists: neither cancelled nor dropped.
    public var isActive = true
  }
}
