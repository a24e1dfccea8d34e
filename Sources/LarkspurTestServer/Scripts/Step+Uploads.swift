// Steps for resumable uploads (draft-ietf-httpbis-resumable-upload). `expectBytes(count:)` behind them reads a part of
// the content, and `reset` or `close` cuts the upload there.

extension TestServer.Step {
  /// Sends a 104, which says that the upload can continue.
  ///
  /// ```swift
  /// server.enqueue([.expectHead, .announceUpload(at: "/files/1"), .expectBytes(count: 1000), .reset])
  /// ```
  ///
  /// - Parameters:
  ///   - location: The value of `Location`, or `nil` for a 104 that only states the progress.
  ///   - version: The value of `Upload-Draft-Interop-Version`, or `nil` for no such field.
  ///   - offset: The value of `Upload-Offset`, or `nil` for no such field.
  ///   - fields: Fields to add, such as `Upload-Limit`.
  public static func announceUpload(
    at location: String?, version: Int? = 8, offset: Int? = nil, _ fields: TestServer.Fields = [:]
  ) -> Self {
    var all = TestServer.Fields()
    if let location { all.add("Location", location) }
    if let version { all.add("Upload-Draft-Interop-Version", String(version)) }
    if let offset { all.add("Upload-Offset", String(offset)) }
    for field in fields { all.add(field.name, field.value) }
    let head = "HTTP/1.1 104 \(reasonPhrase(104))\r\n\(lines(all))\r\n"
    return Self(.send(Array(head.utf8), pieceBytes: .max, gap: .zero), "announceUpload")
  }
}
