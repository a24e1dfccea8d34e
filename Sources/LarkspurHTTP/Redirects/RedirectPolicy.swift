import LarkspurBytes

/// The rules for following a redirecting response (RFC 9110 15.4), as far as they concern no URL.
package enum RedirectPolicy {
  /// Maximum number of redirections of a task. Browsers follow as many (Fetch standard). Ends loops of redirections.
  package static let countMax = 20

  /// Whether a client follows the location of a response with this status.
  package static func isFollowed(_ status: Int) -> Bool {
    switch status {
    // 305 and 306 are no longer in use. RFC 9110 15.4 allows a client to follow the location of any status of the
    // class, and Foundation follows these two. The former meaning of 305, a proxy, is ignored.
    case 301, 302, 303, 305...308: true
    // 300 leaves the choice to the user, and 304 is about a cache.
    default: false
    }
  }

  /// Returns the location of a response's `Location` fields, or `nil` if there is none, or if several fields differ.
  package static func location(_ values: [[UInt8]]) -> [UInt8]? {
    guard let first = values.first, values.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// Whether the next request is a GET without a body, whatever the request was.
  ///
  /// RFC 9110 15.4.2 and 15.4.3 allow a POST to become a GET, as it does in browsers. 15.4.4 requires a GET after a 303,
  /// except for HEAD.
  package static func becomesGet(_ method: String, after status: Int) -> Bool {
    switch status {
    case 303: method != "GET" && method != "HEAD"
    case 301, 302: method == "POST"
    default: false
    }
  }

  /// The names of the fields that describe a body. A request that loses its body loses these fields (RFC 9110 15.4).
  private static let bodyFields = [
    "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Location", "Transfer-Encoding",
    "Expect", "Digest", "Content-MD5", "Content-Range",
  ]

  /// What a redirected request leaves behind.
  package struct Change: Hashable, Sendable {
    /// Whether the next request has no body.
    package var dropsBody = false
    /// Whether the next request is for another origin.
    package var leavesOrigin = false
    /// Whether the next request is not sent over TLS, and this one is.
    package var leavesTLS = false

    package init() {}
  }

  /// Whether the next request keeps a field of this name.
  package static func keeps(_ name: String, after change: Change) -> Bool {
    if change.dropsBody, bodyFields.contains(where: { name.equalsIgnoringCase($0) }) { return false }
    // A redirection back to the first origin does not restore a field: each request is made from the previous one.
    if change.leavesOrigin, isPrivate(name) { return false }
    // RFC 9110 10.1.3: the URL of a secure page is not sent over an insecure connection.
    return !(change.leavesTLS && name.equalsIgnoringCase("Referer"))
  }

  /// Whether a field is meant for one origin, so that it must not be sent to another (RFC 9110 15.4).
  package static func isPrivate(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: name.equalsIgnoringCase("Host")
    case 6: name.equalsIgnoringCase("Cookie")
    case 13: name.equalsIgnoringCase("Authorization")
    case 19: name.equalsIgnoringCase("Proxy-Authorization")
    default: false
    }
  }
}
