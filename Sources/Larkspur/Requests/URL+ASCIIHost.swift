import Foundation
import LarkspurHTTP

extension URL {
  /// The host as it is looked up, compared and sent: in lower case, in ASCII, without brackets. An IPv6 address keeps its
  /// zone, decoded: `fe80::1%eth0`.
  ///
  /// Foundation turns the labels of other scripts into A-labels (UTS 46) when it parses a URL, but not those that are
  /// percent-encoded: these are sent through it once more. Nil: there is no host, or none that can be written in ASCII. Whether
  /// it is a name that may be looked up is `HostName`'s question.
  var asciiHost: String? {
    guard let host = host(percentEncoded: false), !host.isEmpty else { return nil }
    if host.utf8.allSatisfy({ $0 < 0x80 }) { return HostName.normal(host) }
    var components = URLComponents()
    components.scheme = "http"
    components.host = host
    // A percent sign: it could not be turned into labels, and was encoded instead.
    guard let encoded = components.encodedHost, !encoded.isEmpty,
      encoded.utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") })
    else { return nil }
    return HostName.normal(encoded)
  }
}
