/// The facts of a response that decide on a resumable upload.
///
/// A field that cannot be read counts as missing, as the draft demands ("Other values MUST cause the entire header
/// field to be ignored", draft 10, section 4.1).
package struct UploadResponse: Hashable, Sendable {
  package var status: Int
  /// The URL of the request that was answered, behind redirections.
  package var url: String
  /// The value of `Upload-Draft-Interop-Version`.
  package var interopVersion: Int?
  package var offset: Int?
  /// The completeness by `Upload-Complete` or, negated, by `Upload-Incomplete`.
  package var isComplete: Bool?
  package var length: Int?
  package var limits: UploadLimits?
  /// The absolute URL that `Location` names, without a fragment.
  package var location: String?
  /// The delay in seconds that `Retry-After` asks for.
  package var retryAfter: Double?

  package init(status: Int, url: String) {
    self.status = status
    self.url = url
  }

  /// Reads the fields of a response.
  ///
  /// - Parameters:
  ///   - version: The version of the upload. Fields of other versions are ignored.
  ///   - now: The current time in seconds since 1970.
  package init(
    status: Int, url: String, version: ResumableUploadVersion, now: Double, fields: ResumePoint.Fields
  ) {
    self.init(status: status, url: url)
    interopVersion = Self.integer(fields("upload-draft-interop-version"))
    offset = Self.integer(fields("upload-offset"))
    if case .boolean(let value)? = StructuredFieldParser.item(fields(version.completenessField.lowercased())) {
      isComplete = version == .interop3 ? !value : value
    }
    if version.hasLimits {
      length = Self.integer(fields("upload-length"))
      limits = UploadLimits(fields("upload-limit"))
    }
    let locations = fields("location")
    if locations.count == 1 {
      location = LocationValue.target(Array(locations[0].utf8), from: url, inheritsFragment: false).map { target in
        String(target.prefix { $0 != "#" })
      }
    }
    retryAfter = fields("retry-after").first.flatMap { RetryAfter.seconds($0, now: now) }
  }

  /// Returns the value of an Item that is a non-negative Integer, or `nil` for any other value.
  private static func integer(_ lines: [String]) -> Int? {
    guard case .integer(let value)? = StructuredFieldParser.item(lines), value >= 0 else { return nil }
    return value
  }

  var isSuccess: Bool { 200..<300 ~= status }
}
