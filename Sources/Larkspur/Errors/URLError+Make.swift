import Foundation
import LarkspurIO

/// The value of `NSURLErrorFailingURLStringErrorKey`, which is deprecated and which many programs still read.
private let failingURLStringKey = "NSErrorFailingURLStringKey"

extension NSError {
  /// Returns the entries of `userInfo` for the message of an error: its description, and the reason, which `print` shows.
  /// Without a reason `print` shows `"(null)"`.
  package static func entries(forMessage message: String) -> [String: Any] {
    [NSLocalizedDescriptionKey: message, NSLocalizedFailureReasonErrorKey: message]
  }
}

extension URLError {
  /// Creates an error with a code, a message, and the underlying error. Without a message, the code's name is the
  /// message. As on Darwin, the underlying error is CFNetwork's of the same code if there is no other one; an error
  /// `cancelled` has none.
  package static func make(
    _ code: Code, _ message: String? = nil, url: URL? = nil, underlying: (any Error)? = nil,
    more: [String: Any] = [:]
  ) -> URLError {
    var info = more
    if let url {
      info[NSURLErrorFailingURLErrorKey] = url
      info[failingURLStringKey] = url.absoluteString
    }
    let message = message ?? "\(code)"
    info.merge(NSError.entries(forMessage: message)) { $1 }
    if let underlying {
      info[NSUnderlyingErrorKey] = underlying
    } else if code != .cancelled {
      info[NSUnderlyingErrorKey] = cfNetwork(code, message, more)
    }
    return URLError(code, userInfo: info)
  }

  /// Creates CFNetwork's error with the same code.
  static func cfNetwork(_ code: Code, _ message: String, _ info: [String: Any]) -> NSError {
    NSError(
      domain: "kCFErrorDomainCFNetwork", code: code.rawValue,
      userInfo: NSError.entries(forMessage: message).merging(info) { $1 })
  }

  /// Returns an `NSError` of URL loading as a `URLError`, and any other error unchanged. On Darwin such an `NSError`
  /// already is a `URLError`; Foundation on Linux bridges only in the other direction.
  static func bridged(_ error: any Error) -> any Error {
    let other = error as NSError
    guard type(of: error) is NSError.Type, other.domain == NSURLErrorDomain, let code = Code(rawValue: other.code)
    else { return error }
    return URLError(code, userInfo: other.userInfo)
  }

  /// Returns this error with the address of the server or proxy, unless the error has an address or is `cancelled`.
  func from(_ peer: SocketAddress?) -> URLError {
    guard let peer, code != .cancelled, userInfo[Self.peerAddressKey] == nil else { return self }
    var info = userInfo
    info[Self.peerAddressKey] = "\(peer)"
    return URLError(code, userInfo: info)
  }

  static let peerAddressKey = "LarkspurPeerAddress"

  /// Returns this error with the URL that failed, unless the error has one.
  func failing(at url: URL?) -> URLError { failingURL == nil ? moved(to: url) : self }

  /// Returns the error with another failing URL, or unchanged if `url` is `nil`.
  func moved(to url: URL?) -> URLError {
    guard let url else { return self }
    var info = userInfo
    info[NSURLErrorFailingURLErrorKey] = url
    info[failingURLStringKey] = url.absoluteString
    return URLError(code, userInfo: info)
  }
}
