import Foundation
import Larkspur

/// Requests that return when the response is there. They need neither the main queue nor a completion queue. Cancelling
/// the caller's task cancels the request.
///
/// They throw what a failure block is told: also when no request can be made.
extension AFHTTPSessionManager {
  /// Makes a request of a method, a path and parameters, and gives what the response serializer has made of the
  /// response.
  ///
  /// - Parameters:
  ///   - method: `GET`, `OPTIONS`, or whatever the server knows.
  ///   - urlString: Relative to ``baseURL``, or a whole URL.
  ///   - parameters: What the request serializer takes: as a rule a dictionary.
  ///   - headers: Fields for this request; they replace the serializer's.
  ///   - uploadProgress: Called on ``AFURLSessionManager/operationQueue`` as the body leaves.
  ///   - downloadProgress: Called on ``AFURLSessionManager/operationQueue`` as the content comes.
  public func value(
    forHTTPMethod method: String, urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      for: request(method, urlString, parameters, headers), uploadProgress: uploadProgress,
      downloadProgress: downloadProgress)
  }

  /// A GET.
  public func get(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      forHTTPMethod: "GET", urlString: urlString, parameters: parameters, headers: headers, downloadProgress: progress)
  }

  /// A HEAD, whose response has no value.
  @discardableResult
  public func head(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> URLResponse {
    try await value(forHTTPMethod: "HEAD", urlString: urlString, parameters: parameters, headers: headers).response
  }

  /// A POST.
  @discardableResult
  public func post(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      forHTTPMethod: "POST", urlString: urlString, parameters: parameters, headers: headers, uploadProgress: progress)
  }

  /// A POST of a form in parts.
  ///
  /// - Parameters:
  ///   - block: Appends parts. It is called before anything is sent.
  ///   - urlString: Relative to the base URL, or a whole URL.
  ///   - progress: Called on the operation queue, as bytes go their way.
  ///   - headers: Fields for this request; they replace the serializer's.
  ///   - parameters: What the request serializer takes: as a rule a dictionary.
  @discardableResult
  public func post(
    _ urlString: String, parameters: [String: Any]? = nil, headers: [String: String]? = nil,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await upload(withStreamedRequest: form(urlString, parameters, headers, block), progress: progress)
  }

  /// A PUT.
  @discardableResult
  public func put(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "PUT", urlString: urlString, parameters: parameters, headers: headers)
  }

  /// A PATCH.
  @discardableResult
  public func patch(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "PATCH", urlString: urlString, parameters: parameters, headers: headers)
  }

  /// A DELETE.
  @discardableResult
  public func delete(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "DELETE", urlString: urlString, parameters: parameters, headers: headers)
  }
}
