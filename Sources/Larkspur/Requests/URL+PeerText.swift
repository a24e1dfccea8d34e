import Foundation
import LarkspurHTTP

extension URL {
  /// Makes a URL of bytes in which a peer names one: a `Location`, a `Content-Location`. Every such URL is made here.
  ///
  /// `LocationValue` percent-encodes what may not stand where it does. Foundation would encode it as well, but with it each
  /// `%` of that part, which names another resource and grows with every redirection.
  ///
  /// - Parameters:
  ///   - bytes: The value of a field, as it came.
  ///   - base: The URL of the response, if the text may be relative to it.
  ///   - inheritsFragment: Whether a URL without a fragment gets that of `base` (RFC 9110, section 10.2.2).
  /// - Returns: `nil` if the text is empty. All other text makes a URL, if not one that can be loaded.
  init?(peerText bytes: [UInt8], at base: URL? = nil, inheritsFragment: Bool = false) {
    let text =
      if let base {
        LocationValue.target(bytes, from: base.absoluteString, inheritsFragment: inheritsFragment)
      } else { LocationValue.reference(bytes) }
    guard let text,
      let url = URL(string: text, encodingInvalidCharacters: false)
        // A host's name in another script, the one part that is left to encode. Foundation refuses what is no such name.
        ?? URL(string: text) ?? URL(string: LocationValue.ascii(text), encodingInvalidCharacters: false)
    else { return nil }
    self = url
  }
}
