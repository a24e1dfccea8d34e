// Parts of the deterministic content (RFC 9110, section 14).
//
//   /range/N     N bytes with ETag and Last-Modified; answers Range with 206 or 416, honours If-Range and
//                If-None-Match. A request for several ranges gets the whole content, as the RFC allows.
//                `no-store`: the date would make the content fresh for a long time, and another server may get the
//                port.

let rangeRoutes: [Router.Route] = [
  .get("/range/{count}") { try range($0) }
]

/// The date of the last change. The content never changes.
private let lastModified = "Thu, 01 Jan 2026 00:00:00 GMT"

private func range(_ request: TestServer.Request) throws -> TestServer.Response {
  let count = try request.number("count")
  let tag = "\"range-\(count)\""
  var response = TestServer.Response.content(count: count)
  if request.fields.names(tag: tag, in: "If-None-Match") {
    response = TestServer.Response(status: 304)
  } else if let header = request.fields["Range"], isCurrent(request.fields["If-Range"], tag) {
    switch requestedRange(header, of: count) {
    case .whole: break
    case .part(let range):
      response.status = 206
      response.body = .content(range)
      response.fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(count)"
    case .unsatisfiable:
      response = .json(["error": "no such range"], status: 416)
      response.fields["Content-Range"] = "bytes */\(count)"
    }
  }
  response.fields["Accept-Ranges"] = "bytes"
  response.fields["ETag"] = tag
  response.fields["Last-Modified"] = lastModified
  response.fields["Cache-Control"] = "no-store"
  return response
}

/// Whether the client's validator is the current one: the strong tag or exactly the date. No validator is current, too.
private func isCurrent(_ validator: String?, _ tag: String) -> Bool {
  validator == nil || validator == tag || validator == lastModified
}

private enum RequestedRange {
  case whole
  case part(Range<Int>)
  case unsatisfiable
}

private func requestedRange(_ header: String, of count: Int) -> RequestedRange {
  let parts = header.split(separator: "=", maxSplits: 1)
  guard parts.count == 2, isSameName(parts[0], "bytes"), !parts[1].contains(",") else { return .whole }
  let ends = trimmed(parts[1]).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
  guard ends.count == 2 else { return .whole }
  switch (Int(ends[0]), Int(ends[1])) {
  case (nil, let suffix?) where ends[0].isEmpty:
    return suffix > 0 && count > 0 ? .part(max(count - suffix, 0)..<count) : .unsatisfiable
  case (let first?, nil) where ends[1].isEmpty:
    return first < count ? .part(first..<count) : .unsatisfiable
  case (let first?, let last?) where first <= last:
    return first < count ? .part(first..<min(last, count - 1) + 1) : .unsatisfiable
  default:
    // The value is not a range, so the field is ignored (RFC 9110, section 14.2).
    return .whole
  }
}
