import Foundation

#if canImport(FoundationNetworking)
  @preconcurrency import FoundationNetworking
#endif

/// Answers every request to a host that ends in `.stub` with the URL's path.
open class StubProtocol: URLProtocol {
  override open class func canInit(with request: URLRequest) -> Bool {
    request.url?.host?.hasSuffix(".stub") == true
  }

  override open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override open func startLoading() {
    guard let url = request.url,
      let response = HTTPURLResponse(url: url, statusCode: 203, httpVersion: "HTTP/1.1", headerFields: ["A": "b"])
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    client?.urlProtocol(self, didLoad: Data(url.path.utf8))
    client?.urlProtocolDidFinishLoading(self)
  }

  override open func stopLoading() {}
}

public final class MockTransport: Transport {
  public init() {}

  public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
    (Data("\(request.method) \(request.value(forHTTPHeaderField: "Accept") ?? "")".utf8), URLResponse())
  }
}
