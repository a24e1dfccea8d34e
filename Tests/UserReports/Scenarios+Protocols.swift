import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let protocols = [
    Scenario(name: "protocol-several-pieces", title: "what a URLProtocol loads in several pieces comes whole") { _ in
      let loaded = await session().load(try request("pieces"))
      try expect(loaded.data == Data("onetwothree".utf8), "\(loaded)")
    },
    Scenario(name: "protocol-redirect", title: "a redirect of a URLProtocol's is followed") { _ in
      let loaded = await session().load(try request("redirect"))
      try expect(loaded.data == Data("onetwothree".utf8), "\(loaded)")
    },
    Scenario(name: "protocol-download", title: "a download through a URLProtocol is a file") { _ in
      let request = try request("pieces")
      let session = session()
      let text: String? = await withCheckedContinuation { continuation in
        session.downloadTask(with: request) { location, _, _ in
          continuation.resume(returning: location.flatMap { try? String(contentsOf: $0, encoding: .utf8) })
        }.resume()
      }
      try expect(text == "onetwothree", "\(String(describing: text))")
    },
  ]

  private static func session() -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [Mock.self]
    return URLSession(configuration: configuration)
  }

  private static func request(_ name: String) throws -> URLRequest {
    guard let url = URL(string: "mock://host/\(name)") else { throw Complaint("no URL") }
    return URLRequest(url: url)
  }
}

/// A URLProtocol that serves redirects and pieces of a body, depending on the URL.
private final class Mock: URLProtocol, @unchecked Sendable {
  override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "mock" }
  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
  override func stopLoading() {}

  override func startLoading() {
    guard let url = request.url else { return }
    if url.lastPathComponent == "redirect", let next = URL(string: "mock://host/pieces"),
      let response = HTTPURLResponse(url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: [:])
    {
      client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: next), redirectResponse: response)
      return
    }
    guard let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:]) else {
      return
    }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    for piece in ["one", "two", "three"] { client?.urlProtocol(self, didLoad: Data(piece.utf8)) }
    client?.urlProtocolDidFinishLoading(self)
  }
}
