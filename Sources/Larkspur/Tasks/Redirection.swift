import Foundation

/// What a redirecting response asks for (RFC 9110 15.4).
enum Redirection {
  /// As many as browsers follow (the fetch standard's number). A loop would go on for ever.
  static let countMax = 20

  enum Outcome {
    /// The response is no redirection, or says no place.
    case none
    case follow(URLRequest)
    /// The place cannot be loaded.
    case refuse(URLError.Code, String)
  }

  /// The request that is to be made next, as it is proposed to the delegate.
  static func next(after response: HTTPURLResponse, to request: URLRequest) -> Outcome {
    guard let url = request.url, let location = location(of: response) else { return .none }
    guard let resolved = resolve(location, relativeTo: url) else {
      return .refuse(.badURL, "the server's Location is no URL: \(location)")
    }
    guard let scheme = resolved.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      return .refuse(.unsupportedURL, "the server redirects to another kind of URL: \(resolved.absoluteString)")
    }
    var next = request
    next.url = resolved
    if request.mainDocumentURL == url { next.mainDocumentURL = resolved }
    let method = request.own.method
    switch response.statusCode {
    case 303 where method != "GET" && method != "HEAD", 301 where method == "POST", 302 where method == "POST":
      next.httpMethod = "GET"
      dropBody(of: &next)
    default: break
    }
    if !isSameOrigin(url, resolved) { dropPrivateFields(of: &next) }
    return .follow(next)
  }

  /// Nil: the status is none that is followed, or there is nothing to follow.
  private static func location(of response: HTTPURLResponse) -> String? {
    switch response.statusCode {
    case 301, 302, 303, 307, 308:
      // Several that differ say nothing.
      let values = response.fields.values(of: "Location")
      guard let first = values.first, values.allSatisfy({ $0 == first }) else { return nil }
      return first
    default: return nil
    }
  }

  /// RFC 3986 5.2, and RFC 9110 10.2.2: a fragment is inherited if the location has none.
  private static func resolve(_ location: String, relativeTo url: URL) -> URL? {
    guard let resolved = URL(string: location, relativeTo: url)?.absoluteURL else { return nil }
    guard resolved.fragment == nil, let fragment = url.fragment(percentEncoded: true) else { return resolved }
    return URL(string: resolved.absoluteString + "#" + fragment) ?? resolved
  }

  /// What was said of the body goes with it (RFC 9110 15.4).
  private static func dropBody(of request: inout URLRequest) {
    request.httpBody = nil
    for name in [
      "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location",
      "Transfer-Encoding", "Expect", "Digest", "Content-MD5", "Content-Range",
    ]
    where request.value(forHTTPHeaderField: name) != nil {
      request.setValue(nil, forHTTPHeaderField: name)
    }
  }

  /// RFC 9110 15.4: what is meant for one origin is not told to another. It does not come back either: each request is
  /// made from the one before it.
  static func dropPrivateFields(of request: inout URLRequest) {
    for field in request.own.fields?.all ?? [] where isPrivate(field.name) {
      request.setValue(nil, forHTTPHeaderField: field.name)
    }
  }

  static func isPrivate(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: name.isCaseless("Host")
    case 6: name.isCaseless("Cookie")
    case 13: name.isCaseless("Authorization")
    case 19: name.isCaseless("Proxy-Authorization")
    default: false
    }
  }

  /// RFC 6454 4.
  static func isSameOrigin(_ one: URL, _ other: URL) -> Bool {
    guard let one = try? LoadTarget(one), let other = try? LoadTarget(other) else { return false }
    return one.isSecure == other.isSecure && one.host == other.host && one.port == other.port
  }
}
