import Foundation
import LarkspurHTTP

extension URL {
  /// Creates a URL from the text in which a peer names one: a `Location`, a `Content-Location`. All such URLs are
  /// created here.
  ///
  /// `LocationValue` percent-encodes each character that is not allowed at its place. Foundation would encode these
  /// characters as well, but also each `%` of the same part. The result would name another resource, and grow with
  /// every redirection.
  ///
  /// - Parameters:
  ///   - bytes: The value of a field, as it came.
  ///   - base: The URL of the response, if the text may be relative to it.
  ///   - inheritsFragment: Whether a URL without a fragment gets that of `base` (RFC 9110, section 10.2.2).
  /// - Returns: `nil` if the text is empty. All other text makes a URL, though perhaps not one that can be loaded.
  init?(peerText bytes: [UInt8], at base: URL? = nil, inheritsFragment: Bool = false) {
    let text =
      if let base {
        LocationValue.target(bytes, from: base.absoluteString, inheritsFragment: inheritsFragment)
      } else { LocationValue.reference(bytes) }
    guard let text,
      let url = URL(string: text, encodingInvalidCharacters: false)
        // The host's name may be in another script: the one part that is left to encode. Foundation refuses text that
        // is no such name.
        ?? URL(string: text) ?? URL(string: LocationValue.ascii(text), encodingInvalidCharacters: false)
    else { return nil }
    self = url
  }
}
