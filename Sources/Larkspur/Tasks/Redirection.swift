import Foundation
import LarkspurBytes
import LarkspurHTTP

/// Makes the request that follows a redirecting response (RFC 9110 15.4), by the rules of `RedirectPolicy`.
enum Redirection {
  /// Returns the request to propose to the delegate.
  ///
  /// Whether the new URL can be loaded does not count here. The delegate may refuse the redirection, and a program's
  /// protocol may be able to load the URL.
  ///
  /// - Returns: `nil` if the response is no redirection, or names no location.
  static func next(after response: HTTPURLResponse, to request: URLRequest) -> URLRequest? {
    guard RedirectPolicy.isFollowed(response.statusCode), let url = request.url,
      let location = RedirectPolicy.location(response.fields.rawValues(of: "Location")),
      // RFC 3986 5.2, and RFC 9110 10.2.2: a fragment is inherited if the location has none.
      let target = URL(peerText: location, at: url, inheritsFragment: true)
    else { return nil }
    var next = request
    next.url = target
    if request.mainDocumentURL == url { next.mainDocumentURL = target }
    var change = RedirectPolicy.Change()
    if RedirectPolicy.becomesGet(request.own.method, after: response.statusCode) {
      next.httpMethod = "GET"
      next.httpBody = nil
      change.dropsBody = true
    }
    change.leavesOrigin = !isSameOrigin(url, target)
    change.leavesTLS = url.scheme?.lowercased() == "https" && target.scheme?.lowercased() != "https"
    dropFields(of: &next, after: change)
    return next
  }

  static func isOfHTTP(_ url: URL?) -> Bool {
    let scheme = url?.scheme?.lowercased()
    return scheme == "http" || scheme == "https"
  }

  /// Removes the body, its trailers, and the fields that describe it (RFC 9110 15.4).
  static func dropBody(of request: inout URLRequest) {
    request.httpBody = nil
    var change = RedirectPolicy.Change()
    change.dropsBody = true
    dropFields(of: &request, after: change)
  }

  /// Removes the fields that are meant for one origin, because they must not be sent to another (RFC 9110 15.4).
  static func dropPrivateFields(of request: inout URLRequest) {
    var change = RedirectPolicy.Change()
    change.leavesOrigin = true
    dropFields(of: &request, after: change)
  }

  private static func dropFields(of request: inout URLRequest, after change: RedirectPolicy.Change) {
    if change.dropsBody, request.own.trailers != nil { request.setTrailers([]) { [:] } }
    for field in request.own.fields ?? [] where !RedirectPolicy.keeps(field.name, after: change) {
      request.setValue(nil, forHTTPHeaderField: field.name)
    }
  }

  /// Whether two URLs have the same origin (RFC 6454 4).
  static func isSameOrigin(_ one: URL, _ other: URL) -> Bool {
    guard let one = try? LoadTarget(one), let other = try? LoadTarget(other) else { return false }
    return one.isSecure == other.isSecure && one.host == other.host && one.port == other.port
  }
}
