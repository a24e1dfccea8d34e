/// What servers may make us keep and send. Every limit is inclusive.
public struct CookieLimits: Hashable, Sendable {
  /// The bytes of a cookie's name and value together (RFC 6265bis 5.6). A server could otherwise fill the memory with
  /// one response.
  public static let pairBytesMax = 4096

  /// The bytes of an attribute's value; a longer one is passed over (RFC 6265bis 5.6).
  public static let attributeBytesMax = 1024

  /// How long a cookie that a server sets may live: 400 days (RFC 6265bis 5.5). Nobody is to be tracked for decades.
  public static let lifetimeSecondsMax = 400.0 * 86_400

  /// Cookies of one domain. RFC 6265bis asks for 50 at least; browsers keep 180. Without it one site could crowd out
  /// the cookies of all others.
  public var perDomainMax = 180

  /// Cookies in all: 3000, as RFC 6265bis asks for at least.
  public var totalMax = 3000

  /// When there are too many in all, the domains that have more than this lose theirs first.
  public var fairShare = 50

  /// Set-Cookie fields that one response may have; those that follow are passed over. A response of cookies alone
  /// costs quadratic work.
  public var perResponseMax = 300

  /// The bytes of a Cookie field. Servers refuse requests whose fields are longer: whoever could set many large cookies
  /// would lock the user out. Cookies that do not fit are left out.
  public var fieldBytesMax = 8192

  /// The part of a cookie's remaining lifetime by which a stored expiry may be wrong, and its maximum in seconds. A server that sets
  /// a cookie with `Max-Age` in each response moves the expiry each time: to write each move down would be a write for each
  /// response.
  public static let expiryShare = 0.1
  public static let expirySecondsMax = 86_400.0

  /// Whether a stored expiry is so far from the right one that it has to be written again.
  static func isStale(stored: CookieTime, right: CookieTime, now: CookieTime) -> Bool {
    abs(right.seconds - stored.seconds)
      > min(max(0, right.seconds - now.seconds) * expiryShare, expirySecondsMax)
  }

  public init() {}
}
