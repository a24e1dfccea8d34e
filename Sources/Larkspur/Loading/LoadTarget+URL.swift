import Foundation
import LarkspurHTTP

extension LoadTarget {
  /// Returns the target of a URL.
  ///
  /// - Parameter last: The previous target. If the URL is equal to its URL, or for the same server, that part is not
  ///   read again.
  static func of(_ url: URL, after last: LoadTarget?) throws(Invalid) -> LoadTarget {
    try of(url.absoluteString, after: last) { url.asciiHost }
  }

  convenience init(_ url: URL) throws(Invalid) { try self.init(url.absoluteString) { url.asciiHost } }
}
