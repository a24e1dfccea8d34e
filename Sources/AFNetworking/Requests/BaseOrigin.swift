import Foundation
import Larkspur

/// The origin that the credentials of a manager with a base URL are for (RFC 6454): they are not shown to the server of a
/// whole URL that is given in place of a path, which may come from somebody else.
struct BaseOrigin: Hashable {
  private let scheme: String?
  private let host: String?
  private let port: Int?

  init(_ url: URL) {
    scheme = url.scheme?.lowercased()
    host = url.host(percentEncoded: false)?.lowercased()
    port = url.port ?? (scheme == "https" ? 443 : scheme == "http" ? 80 : nil)
  }

  /// The field that is for the origin alone. Who means another one says so in the call's own headers.
  private static let privateField = "Authorization"

  /// Takes off a request what is for the origin alone, if it is for another one.
  func protect(_ request: inout URLRequest) {
    guard request.value(forHTTPHeaderField: Self.privateField) != nil, let url = request.url, self != BaseOrigin(url)
    else { return }
    request.setValue(nil, forHTTPHeaderField: Self.privateField)
  }

  /// Of fields for any request, those for one to `url`.
  func fields(_ fields: [String: String], for url: URL) -> [String: String] {
    self == BaseOrigin(url)
      ? fields : fields.filter { $0.key.caseInsensitiveCompare(Self.privateField) != .orderedSame }
  }
}
