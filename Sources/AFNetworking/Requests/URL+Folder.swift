import Foundation

extension URL {
  /// As a base URL: its path, if it has one, ends in a slash. Without it the path's last part would be lost where a relative
  /// URL is resolved (RFC 3986 5.2.3).
  var asFolder: URL { path.isEmpty || absoluteString.hasSuffix("/") ? self : appendingPathComponent("") }
}
