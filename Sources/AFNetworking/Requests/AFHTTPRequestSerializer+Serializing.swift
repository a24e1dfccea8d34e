import Foundation
import Larkspur
import Synchronization

extension AFHTTPRequestSerializer {
  /// Returns the request with the default fields that it lacks, and with the parameters.
  func serialized(_ request: URLRequest, _ parameters: Any?) throws -> URLRequest {
    var result = request
    for (name, value) in httpRequestHeaders where request.value(forHTTPHeaderField: name) == nil {
      result.setValue(value, forHTTPHeaderField: name)
    }
    return try complete(result, parameters)
  }

  /// Returns a request that already has its fields, with the parameters.
  func complete(_ request: URLRequest, _ parameters: Any?) throws -> URLRequest {
    var result = request
    if httpMethodsEncodingParametersInURI.contains((request.httpMethod ?? "GET").uppercased()) {
      if let query = try query(of: parameters, for: request), !query.isEmpty { try Self.append(query, to: &result) }
      return result
    }
    guard let body = try body(of: parameters, for: request) else { return result }
    if result.value(forHTTPHeaderField: "Content-Type") == nil {
      result.setValue(body.type, forHTTPHeaderField: "Content-Type")
    }
    result.httpBody = body.bytes
    return result
  }

  /// - Returns: The query, or `nil` if there are no parameters, or the program's block returns `nil`.
  func query(of parameters: Any?, for request: URLRequest) throws -> String? {
    guard let parameters else { return nil }
    let (style, block) = state.withLock { ($0.style, $0.query) }
    if let block {
      return try AutoreleasingUnsafeMutablePointer<NSError?>.thrown { block.value(request, parameters, $0) }
    }
    return switch style {
    case .defaultStyle: QueryString.text(of: parameters)
    }
  }

  /// Appends a query after the existing one, and before the fragment.
  private static func append(_ query: String, to request: inout URLRequest) throws {
    guard let url = request.url else { throw RequestProblem.make(.badURL, "The request has no URL.") }
    let text = url.absoluteString
    let end = text.firstIndex(of: "#") ?? text.endIndex
    let mark = text[..<end].contains("?") ? "&" : "?"
    guard let extended = URL(string: text[..<end] + mark + query + text[end...]) else {
      throw RequestProblem.make(.badURL, "\(text) is no URL with this query: \(query)", request: request)
    }
    request.url = extended
  }
}

/// Requests as `NSMutableURLRequest` objects, which AFNetworking's methods return.
enum MutableRequest {
  static func make(_ request: URLRequest) -> NSMutableURLRequest {
    let object = request._bridgeToObjectiveC().mutableCopy()
    return object as? NSMutableURLRequest ?? nowhere(request.httpMethod)
  }

  /// Returns a request without a URL. It fails when it is loaded, so that nothing is sent by mistake.
  static func nowhere(_ method: String?) -> NSMutableURLRequest {
    let request = NSMutableURLRequest(url: URL(filePath: "/"))
    request.url = nil
    request.httpMethod = method
    return request
  }
}
