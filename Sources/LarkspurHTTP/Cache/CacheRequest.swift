import LarkspurBytes

/// The parts of a request that a cache needs.
public struct CacheRequest: Sendable {
  /// The rule for the use of stored responses.
  public enum Policy: Hashable, Sendable {
    /// By the rules of HTTP (RFC 9111).
    case byProtocol
    case ignoringStored
    /// Uses neither this cache's responses nor those of intermediate caches.
    case ignoringAllCaches
    /// Uses a stored response of any age, or else loads one from the server.
    case storedElseLoad
    /// Uses a stored response of any age, or else fails.
    case storedOnly
    /// Uses a stored response only after the server has confirmed it.
    case revalidating
  }

  public var method: String
  public var fields: FieldList
  public var policy: Policy
  /// Whether the request has a body. The response to a GET with a body is neither stored nor served from the cache.
  public var hasBody: Bool
  /// Whether content codings are undone before the body is delivered.
  public var isDecoding: Bool
  /// Whether a field that the request lacks matches every value of a selecting field.
  public var isLenient: Bool
  public let control: CacheControl

  public init(
    method: String, fields: FieldList, policy: Policy = .byProtocol, hasBody: Bool = false, isDecoding: Bool = true,
    isLenient: Bool = false
  ) {
    self.method = method
    self.fields = fields
    self.policy = policy
    self.hasBody = hasBody
    self.isDecoding = isDecoding
    self.isLenient = isLenient
    control = .ofRequest(fields)
  }

  public var isGet: Bool { method == "GET" }

  public var isHead: Bool { method == "HEAD" }

  /// Whether the method is safe: it changes nothing at the server (RFC 9110 9.2.1).
  public var isSafe: Bool { Self.isSafe(method) }

  public static func isSafe(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE": true
    default: false
    }
  }

  /// Whether the caller has set conditions itself, and so expects their result.
  public var isConditional: Bool {
    fields.contains { field in
      switch field.name.utf8.count {
      case 8: field.name.equalsIgnoringCase("If-Match")
      case 13: field.name.equalsIgnoringCase("If-None-Match")
      case 17: field.name.equalsIgnoringCase("If-Modified-Since")
      case 19: field.name.equalsIgnoringCase("If-Unmodified-Since")
      default: false
      }
    }
  }
}
