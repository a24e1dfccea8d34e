import Foundation
import LarkspurIO

/// What `NSURLErrorFailingURLStringErrorKey` is called: deprecated, and read by many programs.
private let failingURLStringKey = "NSErrorFailingURLStringKey"

extension URLError {
  /// An error of a code, with words for people and whatever lies beneath: as on Darwin the same code of the network library, if
  /// there is nothing else, and nobody has cancelled.
  static func make(
    _ code: Code, _ words: String? = nil, url: URL? = nil, underlying: (any Error)? = nil,
    more: [String: Any] = [:]
  ) -> URLError {
    var info = more
    if let url {
      info[NSURLErrorFailingURLErrorKey] = url
      info[failingURLStringKey] = url.absoluteString
    }
    if let words { info[NSLocalizedDescriptionKey] = words }
    if let underlying {
      info[NSUnderlyingErrorKey] = underlying
    } else if code != .cancelled {
      info[NSUnderlyingErrorKey] = cfNetwork(code, more)
    }
    return URLError(code, userInfo: info)
  }

  /// An error of the network library with the code of this one.
  static func cfNetwork(_ code: Code, _ info: [String: Any]) -> NSError {
    NSError(domain: "kCFErrorDomainCFNetwork", code: code.rawValue, userInfo: info)
  }

  /// A program's error as it is seen on Darwin, where an `NSError` of the domain is a `URLError` as well. Foundation on Linux
  /// bridges in the other direction alone.
  static func bridged(_ error: any Error) -> any Error {
    let other = error as NSError
    guard type(of: error) is NSError.Type, other.domain == NSURLErrorDomain, let code = Code(rawValue: other.code)
    else { return error }
    return URLError(code, userInfo: other.userInfo)
  }

  /// The same, with the address of the server or proxy, unless it says one.
  func from(_ peer: SocketAddress?) -> URLError {
    guard let peer, code != .cancelled, userInfo[Self.peerAddressKey] == nil else { return self }
    var info = userInfo
    info[Self.peerAddressKey] = "\(peer)"
    return URLError(code, userInfo: info)
  }

  static let peerAddressKey = "LarkspurPeerAddress"

  /// The same, with the URL that failed, unless it says one.
  func failing(at url: URL?) -> URLError {
    guard let url, failingURL == nil else { return self }
    var info = userInfo
    info[NSURLErrorFailingURLErrorKey] = url
    info[failingURLStringKey] = url.absoluteString
    return URLError(code, userInfo: info)
  }
}
