#if canImport(FoundationNetworking)
  import Foundation
  import class FoundationNetworking.HTTPURLResponse
  import struct FoundationNetworking.URLRequest

  /// Uses a member that is declared in another module than the imported one.
  func contentLength(of response: HTTPURLResponse, to request: URLRequest) -> Int64 {
    request.httpMethod == "HEAD" ? 0 : response.expectedContentLength
  }
#endif
