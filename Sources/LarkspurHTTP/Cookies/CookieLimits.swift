/// Limits on the cookies that servers can cause to be stored and sent. Every limit is inclusive.
public struct CookieLimits: Hashable, Sendable {
  /// Maximum size of a cookie's name and value together, in bytes (RFC 6265bis 5.6). Without it a server could fill the
  /// memory with one response.
  public static let pairBytesMax = 4096

  /// Maximum size of an attribute's value, in bytes; a longer attribute is ignored (RFC 6265bis 5.6).
  public static let attributeBytesMax = 1024

  /// Maximum lifetime of a cookie that a server sets: 400 days (RFC 6265bis 5.5). The limit keeps servers from tracking
  /// users for decades.
  public static let lifetimeSecondsMax = 400.0 * 86_400

  /// Maximum number of cookies of one domain. RFC 6265bis requires at least 50; browsers keep 180. Without the limit
  /// one site could crowd out the cookies of all others.
  public var perDomainMax = 180

  /// Maximum number of cookies of all domains: 3000, the least that RFC 6265bis requires.
  public var totalMax = 3000

  /// Number of cookies of one domain above which that domain loses cookies first, when there are more than `totalMax`.
  public var fairShare = 50

  /// Maximum number of Set-Cookie fields of one response; later fields are ignored. Without the limit, a response that
  /// sets only cookies costs quadratic work.
  public var perResponseMax = 300

  /// Maximum size of a Cookie field in bytes; cookies that do not fit are left out. Servers refuse requests with longer
  /// fields: a site that sets many large cookies could otherwise lock the user out of a server.
  public var fieldBytesMax = 8192

  /// The share of a cookie's remaining lifetime by which a stored expiry may be wrong, up to `expirySecondsMax`. A
  /// server that sets a cookie with `Max-Age` in each response moves the expiry each time; storing each move would cost
  /// a write for each response (decision 27).
  public static let expiryShare = 0.1
  public static let expirySecondsMax = 86_400.0

  /// Whether a stored expiry is so far from the right one that the cookie must be written again.
  static func isStale(stored: CookieTime, right: CookieTime, now: CookieTime) -> Bool {
    abs(right.seconds - stored.seconds)
      > min(max(0, right.seconds - now.seconds) * expiryShare, expirySecondsMax)
  }

  public init() {}
}
