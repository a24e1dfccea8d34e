import Foundation
import LarkspurHTTP

extension URL {
  /// The host in the form in which it is looked up, compared and sent: in lower case, in ASCII, without brackets. An
  /// IPv6 address keeps its zone, decoded: `fe80::1%eth0`. `nil` if there is no host, or if it cannot be written in
  /// ASCII.
  ///
  /// Foundation converts labels in other scripts to A-labels (UTS 46) when it parses a URL, but not labels that are
  /// percent-encoded. This property converts those as well. `HostName` checks whether the result can be looked up.
  package var asciiHost: String? {
    guard let host = host(percentEncoded: false), !host.isEmpty else { return nil }
    if host.utf8.allSatisfy({ $0 < 0x80 }) { return HostName.normal(host) }
    var components = URLComponents()
    components.scheme = "http"
    components.host = host
    // A percent sign means that Foundation could not convert the name and has encoded it instead.
    guard let encoded = components.encodedHost, !encoded.isEmpty,
      encoded.utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") })
    else { return nil }
    return HostName.normal(encoded)
  }
}
