import Foundation

/// The origin that the credentials of a manager with a base URL are for (RFC 6454): they are not shown to the server of a
/// whole URL that is given in place of a path, which may come from somebody else.
struct BaseOrigin {
  private let scheme: String?
  private let host: String?
  private let port: Int?

  init(_ url: URL) {
    scheme = url.scheme?.lowercased()
    host = url.host(percentEncoded: false)?.lowercased()
    port = url.port ?? (scheme == "https" ? 443 : scheme == "http" ? 80 : nil)
  }

  /// The fields that are for the origin alone.
  static func isPrivate(_ field: String) -> Bool { field.lowercased() == "authorization" }

  func isOrigin(of url: URL) -> Bool {
    let other = BaseOrigin(url)
    return scheme == other.scheme && host == other.host && port == other.port
  }
}
