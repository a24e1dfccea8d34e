import LarkspurTestServer

extension TestServer.Response {
  /// Returns the part of a file that a request asks for, or `nil` if the request has no range.
  ///
  /// - Parameter count: The size of the file in bytes.
  static func part(of count: Int, for request: TestServer.Request, _ fields: TestServer.Fields) -> Self? {
    guard let range = request.fields["Range"] else { return nil }
    let bounds = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
    let (first, end) = (bounds[0], bounds.count > 1 ? bounds[1] + 1 : count)
    var response = Self(status: 206, fields: fields, body: .content(first..<end))
    response.fields["Content-Range"] = "bytes \(first)-\(end - 1)/\(count)"
    return response
  }
}
