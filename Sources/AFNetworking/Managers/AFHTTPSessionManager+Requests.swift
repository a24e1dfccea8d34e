import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Creates requests, and reports their results.
extension AFHTTPSessionManager {
  func request(
    _ method: String, _ path: String, _ parameters: Any?, _ headers: [String: String]?
  ) throws -> URLRequest {
    try checkRefusal()
    let serializer = requestSerializer
    var request: URLRequest
    if serializer.makesPlainRequests, let url = try url(of: path) {
      let (plain, hasQuery) = serializer.state.withLock { $0.request(method, url) }
      request = parameters == nil && hasQuery ? plain : try serializer.complete(plain, parameters)
    } else {
      request =
        try serializer.request(withMethod: method, urlString: absolute(path), parameters: parameters) as URLRequest
    }
    base?.origin.protect(&request)
    return complete(request, headers)
  }

  func form(
    _ path: String, _ parameters: Any?, _ headers: [String: String]?, _ block: ((any AFMultipartFormData) -> Void)?
  ) throws -> URLRequest {
    try checkRefusal()
    var request =
      try requestSerializer.multipartFormRequest(
        withMethod: "POST", urlString: absolute(path), parameters: parameters as? [String: Any],
        constructingBodyWith: block) as URLRequest
    base?.origin.protect(&request)
    return complete(request, headers)
  }

  private func checkRefusal() throws {
    if let refusal = state.withLock({ $0.refusal }) { throw refusal }
  }

  /// Returns the URL of `absolute(_:)`, or `nil` if it is not a URL. Reuses the URL of the latest path.
  private func url(of path: String) throws -> URL? {
    if let latest = requests.withLock({ $0.latest }), latest.path == path { return latest.url }
    guard let url = URL(string: try absolute(path)) else { return nil }
    requests.withLock { $0.latest = (path, url) }
    return url
  }

  private func absolute(_ path: String) throws -> String {
    guard let baseURL = base else { return path }
    // Foundation does not accept an empty URL, but RFC 3986 5.2.2 does: it stands for the base URL.
    guard !path.isEmpty else { return baseURL.text }
    if baseURL.isDirectory, Self.isPlain(path) { return baseURL.text + path }
    guard let url = URL(string: path, relativeTo: baseURL.url) else {
      throw NSError(
        domain: AFURLRequestSerializationErrorDomain, code: NSURLErrorBadURL,
        userInfo: NSError.entries(forMessage: "\(path) is no URL."))
    }
    return url.absoluteString
  }

  /// Whether a path consists only of plain segments with slashes between them. Such a path can be appended to its base
  /// unchanged (RFC 3986 5.2).
  private static func isPlain(_ path: String) -> Bool {
    var isAtStart = true
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
        isAtStart = false
      // A segment that begins with a dot may be `..`, and an empty segment may introduce a host.
      case UInt8(ascii: "."): if isAtStart { return false }
      case UInt8(ascii: "/"):
        if isAtStart { return false }
        isAtStart = true
      default: return false
      }
    }
    return true
  }

  private func complete(_ made: URLRequest, _ headers: [String: String]?) -> URLRequest {
    guard let headers, !headers.isEmpty else { return made }
    var request = made
    for (field, value) in headers { request.setValue(value, forHTTPHeaderField: field) }
    return request
  }

  func run(_ task: URLSessionDataTask?) -> URLSessionDataTask? {
    task?.resume()
    return task
  }

  /// Reports that no task could be made.
  func report(_ error: any Error, to failure: ((URLSessionDataTask?, any Error) -> Void)?) {
    guard let failure else { return }
    let carried = UncheckedSendable(failure)
    (completionQueue ?? .main).async { carried.value(nil, error) }
  }
}

extension AFHTTPRequestSerializer {
  /// Whether `request(withMethod:urlString:parameters:)` can be bypassed: only for classes of this module, because a
  /// program's own class may override it.
  fileprivate var makesPlainRequests: Bool {
    let kind = type(of: self)
    return kind == AFHTTPRequestSerializer.self || kind == AFJSONRequestSerializer.self
      || kind == AFPropertyListRequestSerializer.self
  }
}

/// Holds a task for its completion block, which is created before the task.
final class TaskBox<Kind: URLSessionTask> {
  /// Set before the task is resumed, and released when the completion block is called.
  var task: Kind?

  /// - Returns: A completion that calls one of the blocks, or `nil` if there are no blocks.
  func completion(
    _ success: ((Kind, Any?) -> Void)?, _ failure: ((Kind?, any Error) -> Void)?
  ) -> TaskRecord.Completion? {
    guard success != nil || failure != nil else { return nil }
    return { _, object, error in
      let task = self.task
      self.task = nil
      if let error {
        failure?(task, error)
      } else if let task {
        success?(task, object)
      }
    }
  }
}
