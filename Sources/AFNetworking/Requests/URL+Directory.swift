import Foundation

extension URL {
  /// The URL as a base URL: its path, if there is one, ends in a slash. Otherwise the resolution of a relative URL
  /// would drop the last path segment (RFC 3986 5.2.3).
  var asDirectory: URL { path.isEmpty || absoluteString.hasSuffix("/") ? self : appendingPathComponent("") }
}
