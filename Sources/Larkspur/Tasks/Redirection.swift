import Foundation
import LarkspurHTTP

/// What a redirecting response asks for (RFC 9110 15.4).
enum Redirection {
  /// As many as browsers follow (the fetch standard's number). A loop would go on for ever.
  static let countMax = 20

  /// Returns the request to propose to the delegate, or `nil` if the response is no redirection or names no place.
  ///
  /// Whether the place can be loaded does not count here. A delegate may refuse to go there, and a program's protocol may
  /// know how to.
  static func next(after response: HTTPURLResponse, to request: URLRequest) -> URLRequest? {
    guard isFollowed(response.statusCode), let url = request.url, let location = location(of: response),
      // RFC 3986 5.2, and RFC 9110 10.2.2: a fragment is inherited if the location has none.
      let target = URL(peerText: location, at: url, inheritsFragment: true)
    else { return nil }
    var next = request
    next.url = target
    if request.mainDocumentURL == url { next.mainDocumentURL = target }
    let method = request.own.method
    switch response.statusCode {
    // RFC 9110 15.4.2 and 15.4.3 let a POST become a GET, as everybody does; 15.4.4 wants it of all but HEAD.
    case 303 where method != "GET" && method != "HEAD", 301 where method == "POST", 302 where method == "POST":
      next.httpMethod = "GET"
      dropBody(of: &next)
    default: break
    }
    if !isSameOrigin(url, target) { dropPrivateFields(of: &next) }
    // RFC 9110 10.1.3: where somebody came from in secret is not told in the open.
    if url.scheme?.lowercased() == "https", target.scheme?.lowercased() != "https",
      next.own.fields?.value(of: "Referer") != nil
    {
      next.setValue(nil, forHTTPHeaderField: "Referer")
    }
    return next
  }

  static func isOfHTTP(_ url: URL?) -> Bool {
    let scheme = url?.scheme?.lowercased()
    return scheme == "http" || scheme == "https"
  }

  static func isFollowed(_ status: Int) -> Bool {
    switch status {
    // 305 and 306 are not used any more. RFC 9110 15.4 lets a client go where any status of the class points, and with
    // these two Foundation does. What 305 once meant, a proxy, it does not mean here.
    case 301, 302, 303, 305...308: true
    // 300 leaves the choice to a person, 304 is about a cache.
    default: false
    }
  }

  /// The bytes of the field. Nil: there is none, or there are several that differ and so say nothing.
  private static func location(of response: HTTPURLResponse) -> [UInt8]? {
    let values = response.fields.rawValues(of: "Location")
    guard let first = values.first, values.allSatisfy({ $0 == first }) else { return nil }
    return first
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
