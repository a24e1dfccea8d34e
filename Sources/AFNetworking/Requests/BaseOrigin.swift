import Foundation
import Larkspur

/// The origin that the credentials of a manager with a base URL are for (RFC 6454): they are not shown to the server of a
/// whole URL that is given in place of a path, which may come from somebody else.
struct BaseOrigin {
  private let baseURL: URL

  init(_ baseURL: URL) { self.baseURL = baseURL }

  /// The field that is for the origin alone. Who means another one says so in the call's own headers.
  private static let privateField = "Authorization"

  /// Takes off a request what is for the origin alone, if it is for another one.
  func protect(_ request: inout URLRequest) {
    guard request.value(forHTTPHeaderField: Self.privateField) != nil, let url = request.url, !contains(url) else {
      return
    }
    request.setValue(nil, forHTTPHeaderField: Self.privateField)
  }

  /// Of fields for any request, those for one to `url`.
  func fields(_ fields: [String: String], for url: URL) -> [String: String] {
    let isPrivate: (String) -> Bool = { $0.caseInsensitiveCompare(Self.privateField) == .orderedSame }
    guard fields.keys.contains(where: isPrivate), !contains(url) else { return fields }
    return fields.filter { !isPrivate($0.key) }
  }

  /// Whether a server asks for its own credentials: also one that has sent its client on to TLS.
  func contains(_ space: URLProtectionSpace) -> Bool {
    guard !space.isProxy() else { return false }
    let (asking, own) = (
      [space.protocol?.lowercased(), space.host.lowercased(), "\(space.port)"], Self.parts(of: baseURL)
    )
    return asking == own || asking == ["https", own[1], "443"] && own == ["http", own[1], "80"]
  }

  private func contains(_ url: URL) -> Bool { Self.parts(of: url) == Self.parts(of: baseURL) }

  private static func parts(of url: URL) -> [String?] {
    let scheme = url.scheme?.lowercased()
    let port = url.port ?? (scheme == "https" ? 443 : scheme == "http" ? 80 : nil)
    return [scheme, url.host(percentEncoded: false)?.lowercased(), port.map(String.init)]
  }
}
