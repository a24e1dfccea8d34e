import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The part of a session that the client uses, as a protocol, so that tests need no network.
public protocol Transport {
  func data(for request: URLRequest) async throws -> (Data, URLResponse)
}

extension URLSession: Transport {}

extension URLRequest {
  public var method: String { httpMethod ?? "GET" }

  public mutating func accept(_ type: String) { setValue(type, forHTTPHeaderField: "Accept") }
}

public struct Client {
  private let transport: any Transport

  public init(transport: any Transport = URLSession.shared) {
    self.transport = transport
  }

  public func text(at url: URL) async throws -> (status: Int, text: String) {
    var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 30)
    request.accept("text/plain")
    let (data, response) = try await transport.data(for: request)
    return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
  }

  /// Loads with a completion handler, as older code does.
  public static func load(_ url: URL, completion: @escaping @Sendable (Data?, URLResponse?, Error?) -> Void) {
    URLSession.shared.dataTask(with: url, completionHandler: completion).resume()
  }
}
