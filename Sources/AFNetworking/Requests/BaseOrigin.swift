import Foundation
import Larkspur

/// The origin (RFC 6454) that the credentials of a manager with a base URL are meant for. Credentials are not sent to
/// other origins: a program may pass an absolute URL in place of a path, and the URL may come from an untrusted source.
struct BaseOrigin {
  private let baseURL: URL

  init(_ baseURL: URL) { self.baseURL = baseURL }

  /// The field that is meant for the origin only. A program that wants to send it elsewhere passes it in the headers of
  /// the call.
  private static let privateField = "Authorization"

  /// Removes the private field from a request to another origin.
  func protect(_ request: inout URLRequest) {
    guard request.value(forHTTPHeaderField: Self.privateField) != nil, let url = request.url, !contains(url) else {
      return
    }
    request.setValue(nil, forHTTPHeaderField: Self.privateField)
  }

  /// Returns the default fields for a request to `url`: without the private field if the URL has another origin.
  func fields(_ fields: [String: String], for url: URL) -> [String: String] {
    let isPrivate: (String) -> Bool = { $0.caseInsensitiveCompare(Self.privateField) == .orderedSame }
    guard fields.keys.contains(where: isPrivate), !contains(url) else { return fields }
    return fields.filter { !isPrivate($0.key) }
  }

  /// Whether a challenge comes from the origin itself, or from its HTTPS server on port 443 if the origin is HTTP on
  /// port 80, which may have redirected there.
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
