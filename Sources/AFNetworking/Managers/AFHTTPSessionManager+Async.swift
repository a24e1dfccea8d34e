import Foundation
import Larkspur

/// Async requests. They return when the response has arrived, and need neither the main queue nor a completion queue.
/// Cancelling the caller's task cancels the request.
///
/// These functions throw the errors that a failure block receives, also if no request can be made.
extension AFHTTPSessionManager {
  /// Creates a request from a method, a path and parameters, runs it, and returns the response serializer's object.
  ///
  /// - Parameters:
  ///   - method: `GET`, `OPTIONS`, or any method that the server supports.
  ///   - urlString: A path relative to ``baseURL``, or an absolute URL.
  ///   - parameters: A value that the request serializer can write: mostly a dictionary.
  ///   - headers: Fields for this request; they replace the serializer's fields of the same names.
  ///   - uploadProgress: Called on ``AFURLSessionManager/operationQueue`` while the body is sent.
  ///   - downloadProgress: Called on ``AFURLSessionManager/operationQueue`` while the content arrives.
  public func value(
    forHTTPMethod method: String, urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      for: request(method, urlString, parameters, headers), uploadProgress: uploadProgress,
      downloadProgress: downloadProgress)
  }

  /// Runs a `GET` request.
  public func get(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      forHTTPMethod: "GET", urlString: urlString, parameters: parameters, headers: headers, downloadProgress: progress)
  }

  /// Runs a `HEAD` request, whose response has no value.
  @discardableResult
  public func head(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> URLResponse {
    try await value(forHTTPMethod: "HEAD", urlString: urlString, parameters: parameters, headers: headers).response
  }

  /// Runs a `POST` request.
  @discardableResult
  public func post(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil,
    progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(
      forHTTPMethod: "POST", urlString: urlString, parameters: parameters, headers: headers, uploadProgress: progress)
  }

  /// Runs a `POST` request with a multipart form.
  ///
  /// - Parameters:
  ///   - block: Appends parts. It is called before anything is sent.
  ///   - urlString: A path relative to the base URL, or an absolute URL.
  ///   - progress: Called on the operation queue while the body is sent.
  ///   - headers: Fields for this request; they replace the serializer's fields of the same names.
  ///   - parameters: Parts of the form, before those of the block.
  @discardableResult
  public func post(
    _ urlString: String, parameters: [String: Any]? = nil, headers: [String: String]? = nil,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, progress: ((Progress) -> Void)? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await upload(withStreamedRequest: form(urlString, parameters, headers, block), progress: progress)
  }

  /// Runs a `PUT` request.
  @discardableResult
  public func put(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "PUT", urlString: urlString, parameters: parameters, headers: headers)
  }

  /// Runs a `PATCH` request.
  @discardableResult
  public func patch(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "PATCH", urlString: urlString, parameters: parameters, headers: headers)
  }

  /// Runs a `DELETE` request.
  @discardableResult
  public func delete(
    _ urlString: String, parameters: Any? = nil, headers: [String: String]? = nil
  ) async throws -> (value: Any?, response: URLResponse) {
    try await value(forHTTPMethod: "DELETE", urlString: urlString, parameters: parameters, headers: headers)
  }
}
