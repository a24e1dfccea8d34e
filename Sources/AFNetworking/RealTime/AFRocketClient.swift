import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Subscribes to the changes of resources, by the protocol Rocket: an event stream of JSON Patch documents.
///
/// ```swift
/// let client = AFRocketClient()
/// let source = try client.subscribe("https://api.example.com/songs") { operations, error in
///   for operation in operations ?? [] where operation.type == .addOperationType {
///     print("new at \(operation.path ?? ""): \(operation.value ?? "nothing")")
///   }
/// }
/// ```
///
/// The client uses a private session with the default configuration. ``AFHTTPSessionManager`` has the same methods,
/// which use the manager's session. Safe to use from any thread.
open class AFRocketClient: NSObject, @unchecked Sendable {
  private struct Details {
    var requestSerializer: AFHTTPRequestSerializer = AFEventSourceRequestSerializer()
    var completionQueue: DispatchQueue?
  }

  private let details = Mutex(Details())

  /// The base of relative paths, or `nil`. If it has a path, the path ends in a slash. AFRocketClient has no base URL.
  public let baseURL: URL?

  /// Creates a client without a base URL.
  public override convenience init() { self.init(baseURL: nil) }

  /// Creates a client.
  ///
  /// - Parameter url: The base of relative paths. `https://example.com/v1` counts as `https://example.com/v1/`.
  public init(baseURL url: URL?) {
    baseURL = url?.asDirectory
    super.init()
  }

  /// The serializer that creates requests. An ``AFEventSourceRequestSerializer`` by default.
  open var requestSerializer: AFHTTPRequestSerializer {
    get { details.withLock { $0.requestSerializer } }
    set { details.put(newValue, at: \.requestSerializer) }
  }

  /// The queue for blocks, or `nil`, the default, for the main queue.
  open var completionQueue: DispatchQueue? {
    get { details.withLock { $0.completionQueue } }
    set { details.put(newValue, at: \.completionQueue) }
  }

  /// Opens an event source with a `SUBSCRIBE` request.
  ///
  /// - Parameters:
  ///   - urlString: An absolute URL, or a path relative to ``baseURL``.
  ///   - block: Called on ``completionQueue`` for each event with the type `patch`, with the operations or an error,
  ///     and once with an error if the source fails. Events without a type that are patches count, too.
  /// - Returns: The source, which stays open until ``AFEventSource/close()``.
  /// - Throws: The error of the request serializer.
  @discardableResult
  open func subscribe(
    _ urlString: String, using block: (([AFJSONPatchOperation]?, (any Error)?) -> Void)?
  ) throws -> AFEventSource {
    let text = baseURL.flatMap { URL(string: urlString, relativeTo: $0)?.absoluteString } ?? urlString
    let serializer = requestSerializer
    var request =
      try serializer.request(withMethod: PatchSubscription.method, urlString: text, parameters: nil) as URLRequest
    if let baseURL { BaseOrigin(baseURL).protect(&request) }
    return try openEventSource(with: PatchSubscription.complete(request), serializer: .init(), using: block)
  }

  /// Opens an event source with a request.
  ///
  /// - Parameters:
  ///   - request: The request that opens each connection.
  ///   - serializer: Reads the patches, on a queue of the source. Its content types do not matter.
  ///   - block: See ``subscribe(_:using:)``.
  /// - Returns: The source, which stays open until ``AFEventSource/close()``.
  @discardableResult
  open func openEventSource(
    with request: URLRequest, serializer: AFJSONPatchResponseSerializer,
    using block: (([AFJSONPatchOperation]?, (any Error)?) -> Void)?
  ) throws -> AFEventSource {
    try PatchSubscription.open(request, .standard, on: completionQueue, serializer, block)
  }
}
