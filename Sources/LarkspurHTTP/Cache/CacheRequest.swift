/// What a cache has to know of a request.
public struct CacheRequest: Sendable {
  /// How far stored responses may be used.
  public enum Policy: Hashable, Sendable {
    /// As HTTP has it (RFC 9111).
    case byProtocol
    case ignoringStored
    /// Neither this cache's responses nor those of caches on the way.
    case ignoringAllCaches
    /// Of whatever age; else from the server.
    case storedElseLoad
    /// Of whatever age; else nothing.
    case storedOnly
    /// Only once the server has said that they still hold.
    case revalidating
  }

  public var method: String
  public var fields: CacheFields
  public var policy: Policy
  /// A GET with a body is asked of one server for one purpose, and its answer is for nobody else.
  public var hasBody: Bool
  /// Content codings are undone before anybody sees the body.
  public var isDecoding: Bool
  /// A field that the request lacks matches any that a response was chosen by.
  public var isLenient: Bool
  public let control: CacheControl

  public init(
    method: String, fields: CacheFields, policy: Policy = .byProtocol, hasBody: Bool = false, isDecoding: Bool = true,
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

  /// Changes nothing at the server (RFC 9110 9.2.1).
  public var isSafe: Bool { Self.isSafe(method) }

  public static func isSafe(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE": true
    default: false
    }
  }

  /// Conditions of the caller's own. He wants to hear what becomes of them.
  public var isConditional: Bool {
    fields.contains { field in
      switch field.name.utf8.count {
      case 8: field.name.isCaselessly("If-Match")
      case 13: field.name.isCaselessly("If-None-Match")
      case 17: field.name.isCaselessly("If-Modified-Since")
      case 19: field.name.isCaselessly("If-Unmodified-Since")
      default: false
      }
    }
  }
}
