import Foundation
import Larkspur

// Names of earlier importers: methods in capitals, and a `failure` that always receives an operation.

extension AFHTTPRequestOperationManager {
  /// See `get(_:parameters:success:failure:)`.
  @discardableResult
  public func GET(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    get(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `GET` request, with a `failure` that always receives an operation: one that was never started if no request
  /// could be made.
  @discardableResult
  @_disfavoredOverload
  public func get(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    get(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `GET` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func GET(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    get(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `head(_:parameters:success:failure:)`.
  @discardableResult
  public func HEAD(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    head(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `HEAD` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func head(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    head(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `HEAD` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func HEAD(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    head(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `post(_:parameters:success:failure:)`.
  @discardableResult
  public func POST(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    post(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `POST` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func post(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    post(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `POST` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func POST(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    post(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `put(_:parameters:success:failure:)`.
  @discardableResult
  public func PUT(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    put(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `PUT` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func put(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    put(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `PUT` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func PUT(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    put(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `patch(_:parameters:success:failure:)`.
  @discardableResult
  public func PATCH(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    patch(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `PATCH` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func patch(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    patch(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `PATCH` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func PATCH(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    patch(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `delete(_:parameters:success:failure:)`.
  @discardableResult
  public func DELETE(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    delete(urlString, parameters: parameters, success: success, failure: failure)
  }

  /// Runs a `DELETE` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func delete(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    delete(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// Runs a `DELETE` request, with a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func DELETE(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    delete(urlString, parameters: parameters, success: success, failure: total(failure))
  }

  /// See `post(_:parameters:constructingBodyWith:success:failure:)`.
  @discardableResult
  public func POST(
    _ urlString: String, parameters: Any? = nil,
    constructingBodyWithBlock block: ((any AFMultipartFormData) -> Void)?,
    success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    post(urlString, parameters: parameters, constructingBodyWith: block, success: success, failure: failure)
  }

  /// Runs a `POST` request with a multipart form, and a `failure` that always receives an operation.
  @discardableResult
  @_disfavoredOverload
  public func post(
    _ urlString: String, parameters: Any? = nil, constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
    success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    post(urlString, parameters: parameters, constructingBodyWith: block, success: success, failure: total(failure))
  }

  private func total(
    _ failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> ((AFHTTPRequestOperation?, any Error) -> Void)? {
    guard let failure else { return nil }
    let url = baseURL ?? URL(fileURLWithPath: "/")
    return { operation, error in failure(operation ?? AFHTTPRequestOperation(request: URLRequest(url: url)), error) }
  }
}
