/// The parts of a request that Digest and ``AuthenticationLedger`` need.
public struct AuthenticatedRequest: Sendable {
  /// Computes the hash of the body, for Digest's `auth-int`. Returns `nil` if the body cannot be hashed before it is
  /// sent (a stream, for example).
  public typealias BodyHash = @Sendable (DigestHash) -> [UInt8]?

  public let method: String
  /// The request target as the origin or the proxy sees it: see ``init(method:target:to:bodyHash:)``.
  public let target: String
  private let body: Body

  private enum Body: Sendable {
    case none
    case some(BodyHash)
  }

  /// - Parameters:
  ///   - target: The target as it stands in the request line. For an origin, an absolute target is reduced to its path
  ///     and query: a proxy removes the rest (RFC 9112 3.2.1).
  ///   - bodyHash: Computes the hash of the body, or `nil` if the request has no body.
  public init(method: String, target: String, to role: AuthenticationTarget.Role, bodyHash: BodyHash? = nil) {
    self.method = method
    self.target = role == .origin ? Self.originForm(target) : target
    body = bodyHash.map(Body.some) ?? .none
  }

  func bodyHash(_ hash: DigestHash, by function: DigestHash.Function) -> [UInt8]? {
    switch body {
    case .none: function(hash, [])
    case .some(let find): find(hash)
    }
  }

  private static func originForm(_ target: String) -> String {
    let bytes = target.utf8
    guard bytes.first != ASCII.slash, let colon = bytes.firstIndex(of: ASCII.colon),
      bytes[bytes.index(after: colon)...].starts(with: "//".utf8)
    else { return target }
    let authority = bytes[colon...].dropFirst(3)
    let end = authority.firstIndex { $0 == ASCII.slash || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
    let rest = String(target[end...])
    return rest.utf8.first == ASCII.slash ? rest : "/" + rest
  }

  /// The path of the target without the query, or `nil` if the target has no path, or one with dot segments, which may
  /// resolve to any other path.
  var path: String? {
    guard target.utf8.first == ASCII.slash else { return nil }
    let path = target.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    let segments = path.split(separator: ASCII.slash)
    let hasDots = segments.contains(where: Self.isDots)
    return hasDots ? nil : String(Substring(path))
  }

  /// Whether a segment is `.` or `..` (RFC 3986 3.3), also with percent-encoded dots.
  private static func isDots(_ segment: Substring.UTF8View.SubSequence) -> Bool {
    var rest = segment
    var count = 0
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard rest.popFirst() == UInt8(ascii: "2"), let digit = rest.popFirst(), digit | 0x20 == UInt8(ascii: "e")
        else {
          return false
        }
      } else if byte != UInt8(ascii: ".") {
        return false
      }
      count += 1
    }
    return (1...2).contains(count)
  }
}

/// The origin or proxy that asks for authentication. Nothing that is known about one target is ever sent to another.
public struct AuthenticationTarget: Hashable, Sendable {
  public enum Role: Hashable, Sendable {
    case origin
    case proxy
  }

  public let role: Role
  /// The scheme in lower case: `http` or `https`, or a proxy's kind.
  public let scheme: String
  /// In lower case.
  public let host: String
  public let port: Int

  public init(_ role: Role, scheme: String, host: String, port: Int) {
    self.role = role
    self.scheme = scheme.lowercased()
    self.host = host.lowercased()
    self.port = port
  }
}
