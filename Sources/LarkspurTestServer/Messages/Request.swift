extension TestServer {
  /// A request as the server has received it.
  public struct Request: Hashable, Sendable {
    /// The number of the request's connection: 1 for the first one that the server accepted.
    public var connection: Int
    /// The number of the request on its connection: 1 for the first one.
    public var ordinal: Int
    /// The method with its letter case kept, such as `GET`.
    public var method: String
    /// The target as sent: `/path?query`, `http://host/path` to a proxy, `host:port` with CONNECT, or `*`.
    public var target: String
    /// `HTTP/1.1` or `HTTP/1.0`.
    public var version: String
    /// Whether the request came over TLS.
    public var isSecure = false
    /// The fields of the head.
    public var fields: Fields
    /// The body with its chunks joined, at most its first ``TestServer/Options/bodyBytesKept`` bytes.
    public var body: [UInt8] = []
    /// The length of the body in bytes, including those that ``body`` does not keep.
    public var bodyCount = 0
    /// The checksum of the whole body.
    public var bodyChecksum = Checksum()
    /// The fields behind a chunked body.
    public var trailers: Fields = [:]
    /// The percent-decoded path segments that a route's `{name}` segments match. Empty in ``TestServer/requests``: only
    /// the route's closure gets them.
    public var parameters: [String: String] = [:]

    /// The target's path, still percent-encoded.
    public var path: String {
      let rest = origin(of: target)
      return String(rest.prefix { $0 != "?" })
    }

    /// The decoded query. Of several values with one name, only the first is kept.
    public var query: [String: String] {
      Dictionary(queryItems.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// The decoded query in its order.
    public var queryItems: [Field] {
      guard let mark = target.firstIndex(of: "?") else { return [] }
      return decodedPairs(target[target.index(after: mark)...])
    }

    /// The body as text: decoded as UTF-8 if valid, otherwise as ISO 8859-1.
    public var bodyText: String { LarkspurTestServer.text(of: body) }

    /// The URL that the client requested, as far as the request states it.
    public var url: String {
      target.hasPrefix("/") ? origin + target : target
    }

    /// The scheme and the authority, as far as the request states them.
    var origin: String { (isSecure ? "https://" : "http://") + (fields["Host"] ?? "") }

    /// The target without the scheme and the authority that a request to a proxy has.
    private func origin(of target: String) -> Substring {
      guard !target.hasPrefix("/") else { return target[...] }
      let parts = target.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, parts[0].hasSuffix(":"), parts[1].isEmpty else { return target[...] }
      guard let slash = parts[2].firstIndex(of: "/") else { return "/" }
      return parts[2][slash...]
    }

    /// Whether the client means to send another request on the connection (RFC 9112, section 9.3).
    var asksToKeepAlive: Bool {
      if fields.contains(token: "close", in: "Connection") { return false }
      return version != "HTTP/1.0" || fields.contains(token: "keep-alive", in: "Connection")
    }
  }
}
