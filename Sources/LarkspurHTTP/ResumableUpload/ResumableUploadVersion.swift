/// A version of the protocol of resumable uploads (draft-ietf-httpbis-resumable-upload, "the draft").
///
/// Versions cannot be negotiated: a request names one version in `Upload-Draft-Interop-Version`, and both sides ignore
/// a message of another version (draft 01, section 4.2; draft 13, appendix "Draft Version Identification"). A server
/// of another version therefore counts as a server without resumable uploads.
package enum ResumableUploadVersion: Int, Codable, Hashable, Sendable, CaseIterable {
  /// Draft 01, which URLSession speaks since iOS 17 and macOS 14. `Upload-Incomplete` states the completeness.
  case interop3 = 3
  /// Drafts 09 to 11. `Upload-Complete` states the completeness, appended bytes have the media type
  /// `application/partial-upload`, and servers announce limits.
  case interop8 = 8
  /// Draft 12. A response may complete the upload before all bytes have been sent, 409 says by `Upload-Complete`
  /// whether the upload continues, and two of the limits have become advice.
  case interop9 = 9
  /// Draft 13, which asks for less in responses to HEAD.
  case interop10 = 10

  /// The media type of the content of an append (draft 10, section 6).
  package static let partialUploadType = "application/partial-upload"

  /// Whether the version has `Upload-Complete`, `Upload-Length`, `Upload-Limit`, progress in interim responses, and a
  /// media type for appends.
  var hasLimits: Bool { self != .interop3 }

  /// Whether the rules of draft 12 hold.
  var isOfDraft12: Bool { rawValue >= Self.interop9.rawValue }

  /// Whether the server's offset may be greater than the number of bytes that the client has sent. Draft 10, section
  /// 4.3.1: the upload resource may have got the bytes in another way. Draft 01, section 5: the client may reject it.
  var allowsUnsentOffsets: Bool { self != .interop3 }

  /// The name of the field that states the completeness.
  package var completenessField: String { self == .interop3 ? "Upload-Incomplete" : "Upload-Complete" }

  /// Returns the field's text of a completeness.
  package func completeness(_ isComplete: Bool) -> String {
    StructuredItem.text(self == .interop3 ? !isComplete : isComplete)
  }

  /// Returns the fields of a request that transfers bytes.
  ///
  /// - Parameters:
  ///   - offset: The offset of the first byte, or `nil` for the request that creates the upload.
  ///   - length: The size of the whole representation in bytes.
  ///   - isFinal: Whether the request's content ends with the last byte of the representation.
  func transferFields(offset: Int?, length: Int, isFinal: Bool) -> FieldList {
    var fields = self.fields
    fields.append(Field(completenessField, completeness(isFinal)))
    if let offset { fields.append(Field("Upload-Offset", String(offset))) }
    if hasLimits {
      fields.append(Field("Upload-Length", String(length)))
      if offset != nil { fields.append(Field("Content-Type", Self.partialUploadType)) }
    }
    return fields
  }

  /// The fields of a request that transfers nothing: draft 01 forbids `Upload-Offset` and `Upload-Incomplete` there
  /// (sections 5 and 7).
  var fields: FieldList { [Field("Upload-Draft-Interop-Version", String(rawValue))] }
}
