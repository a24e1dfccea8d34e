/// A request that the machine of a resumable upload makes.
package struct UploadRequest: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// The program's own request, with fields added.
    case creation
    /// Requests the offset.
    case offsetRetrieval
    /// Appends bytes.
    case append
    /// Deletes the upload resource.
    case cancellation
  }

  package var kind: Kind
  /// The absolute URL, or `nil` for the URL of the program's request.
  package var url: String?
  /// Fields to add. In a request to the upload resource they replace the program's fields of these names, and the
  /// program's fields of its content (`Content-Type`, `Content-Encoding` and so on) are left out.
  package var fields: FieldList
  /// The bytes of the representation to send as content. A request without content has an empty range, and sends
  /// `Content-Length: 0` if it is a creation or an append.
  package var content: Range<Int>
  /// Whether the URL has another origin than the program's request. Credentials, cookies and the fields that are private
  /// to an origin must not go there. The owner has agreed to the URL.
  package var leavesOrigin = false

  /// The method, or `nil` for the method of the program's request.
  package var method: String? {
    switch kind {
    case .creation: nil
    case .offsetRetrieval: "HEAD"
    case .append: "PATCH"
    case .cancellation: "DELETE"
    }
  }
}
