#if canImport(FoundationNetworking)
  import Foundation
  import class FoundationNetworking.HTTPURLResponse
  import struct FoundationNetworking.URLRequest

  /// A member of the type that is declared in another module than the one that is imported.
  func contentLength(of response: HTTPURLResponse, to request: URLRequest) -> Int64 {
    request.httpMethod == "HEAD" ? 0 : response.expectedContentLength
  }
#endif
