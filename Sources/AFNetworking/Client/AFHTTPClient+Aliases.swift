import Foundation
import Larkspur

// Overloads for blocks with all-optional arguments: Apple's importer gives the blocks of AFNetworking 1 this form,
// because its headers have no nullability annotations.

extension AFHTTPClient {
  /// See ``getPath(_:parameters:success:failure:)``.
  @_disfavoredOverload
  public func getPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) { getPath(path, parameters: parameters, success: success.map(strict), failure: failure.map(strict)) }

  /// See ``postPath(_:parameters:success:failure:)``.
  @_disfavoredOverload
  public func postPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) { postPath(path, parameters: parameters, success: success.map(strict), failure: failure.map(strict)) }

  /// See ``putPath(_:parameters:success:failure:)``.
  @_disfavoredOverload
  public func putPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) { putPath(path, parameters: parameters, success: success.map(strict), failure: failure.map(strict)) }

  /// See ``deletePath(_:parameters:success:failure:)``.
  @_disfavoredOverload
  public func deletePath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) { deletePath(path, parameters: parameters, success: success.map(strict), failure: failure.map(strict)) }

  /// See ``patchPath(_:parameters:success:failure:)``.
  @_disfavoredOverload
  public func patchPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) { patchPath(path, parameters: parameters, success: success.map(strict), failure: failure.map(strict)) }

  /// See ``httpRequestOperation(with:success:failure:)``.
  @_disfavoredOverload
  public func httpRequestOperation(
    with urlRequest: URLRequest, success: ((AFHTTPRequestOperation?, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation?, (any Error)?) -> Void)?
  ) -> AFHTTPRequestOperation {
    httpRequestOperation(with: urlRequest, success: success.map(strict), failure: failure.map(strict))
  }

  private func strict<Value, Strict>(
    _ block: @escaping (AFHTTPRequestOperation?, Value) -> Void
  ) -> (AFHTTPRequestOperation, Strict) -> Void {
    { operation, value in
      if let value = value as? Value { block(operation, value) }
    }
  }
}
