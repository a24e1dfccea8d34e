import Foundation
import Larkspur
import Synchronization

/// Subscriptions to the changes of a resource, by the protocol Rocket: `GET` loads the resource, `SUBSCRIBE` opens an
/// event stream at its URL, and each event is a JSON Patch document (RFC 6902).
///
/// ```swift
/// manager.get("songs", parameters: nil, headers: nil, progress: nil) { task, songs in
///   library.document = songs
///   _ = try? manager.subscribe("songs") { operations, error in
///     guard let operations, let document = library.document else { return }
///     library.document = try? AFJSONPatchOperation.apply(operations, to: document)
///   }
/// } failure: { task, error in
///   print(error.localizedDescription)
/// }
/// ```
///
/// The stream is loaded by the manager's session: with its cookies, credentials, security policy and blocks. Each open
/// source takes one of the session's connections to the host (`httpMaximumConnectionsPerHost`).
extension AFHTTPSessionManager {
  /// Opens an event source with a `SUBSCRIBE` request.
  ///
  /// - Parameters:
  ///   - urlString: A path relative to ``baseURL``, or an absolute URL.
  ///   - block: Called on the completion queue for each event with the type `patch`, with the operations or an error,
  ///     and once with an error if the source fails. Events without a type that are patches count, too.
  /// - Returns: The source, which stays open until ``AFEventSource/close()``.
  /// - Throws: The error of the request serializer, or of a security policy that has been refused.
  @discardableResult
  public func subscribe(
    _ urlString: String, using block: (([AFJSONPatchOperation]?, (any Error)?) -> Void)?
  ) throws -> AFEventSource {
    let request = try self.request(PatchSubscription.method, urlString, nil, nil)
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
  public func openEventSource(
    with request: URLRequest, serializer: AFJSONPatchResponseSerializer,
    using block: (([AFJSONPatchOperation]?, (any Error)?) -> Void)?
  ) throws -> AFEventSource {
    try checkPolicy()
    let route = EventSourceRoute(session: session) { [weak self] in try self?.checkPolicy() }
    return try PatchSubscription.open(request, route, on: completionQueue, serializer, block)
  }

  /// Throws if the manager must not make requests.
  private func checkPolicy() throws {
    if let refusal = state.withLock({ $0.refusal }) { throw refusal }
  }
}
