extension TestServer {
  /// A request as the server has received it.
  public struct Request: Hashable, Sendable {
    /// The connection that it came on: 1 for the first one that the server accepted.
    public var connection: Int
    /// Its place on that connection: 1 for the first request there.
    public var ordinal: Int
    /// Case kept: `GET`.
    public var method: String
    /// As it was sent: `/path?query`, `http://host/path` to a proxy, `host:port` with CONNECT, or `*`.
    public var target: String
    /// `HTTP/1.1` or `HTTP/1.0`.
    public var version: String
    /// Whether it came over TLS.
    public var isSecure = false
    public var fields: Fields
    /// The body with its chunks joined: its first bytes, if there are more than ``TestServer/Options/bodyBytesKept``.
    public var body: [UInt8] = []
    /// How many bytes the body had, kept or not.
    public var bodyCount = 0
    /// Of the whole body.
    public var bodyChecksum = Checksum()
    /// The fields behind a chunked body.
    public var trailers: Fields = [:]
    /// What a route's `{name}` segments stand for, percent-decoded. Only the route knows them: empty in records.
    public var parameters: [String: String] = [:]

    /// The target's path, still percent-encoded.
    public var path: String {
      let rest = origin(of: target)
      return String(rest.prefix { $0 != "?" })
    }

    /// The decoded query; the first of several values with one name.
    public var query: [String: String] {
      Dictionary(queryItems.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// The decoded query in its order.
    public var queryItems: [Field] {
      guard let mark = target.firstIndex(of: "?") else { return [] }
      return decodedPairs(target[target.index(after: mark)...])
    }

    /// The body as text: UTF-8 if it is that, otherwise ISO 8859-1.
    public var bodyText: String { LarkspurTestServer.text(of: body) }

    /// What the client asked for, as far as the request tells.
    public var url: String {
      target.hasPrefix("/") ? origin + target : target
    }

    /// The scheme and the authority, as far as the request tells.
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
