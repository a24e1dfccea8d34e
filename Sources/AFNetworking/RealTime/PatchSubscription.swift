import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Opens event sources whose events are JSON Patch documents (RFC 6902), as the protocol Rocket has them.
enum PatchSubscription {
  /// Called with the operations of a patch, or with an error.
  typealias Block = ([AFJSONPatchOperation]?, (any Error)?) -> Void

  static let method = "SUBSCRIBE"

  /// Returns a request for an event stream.
  static func complete(_ original: URLRequest) -> URLRequest {
    var request = original
    request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    // The serializer makes an empty form of no parameters, because the method is not among those with a query.
    if request.httpBody?.isEmpty == true {
      request.httpBody = nil
      request.setValue(nil, forHTTPHeaderField: "Content-Type")
    }
    return request
  }

  /// Opens an event source.
  ///
  /// - Parameters:
  ///   - queue: The queue for the block, or `nil` for the main queue.
  ///   - serializer: Reads the patches, on the source's own queue.
  static func open(
    _ request: URLRequest, _ route: EventSourceRoute, on queue: DispatchQueue?,
    _ serializer: AFJSONPatchResponseSerializer, _ block: Block?
  ) throws -> AFEventSource {
    let source = AFEventSource(request: request, opens: false)
    source.completionQueue = queue
    source.details.withLock { $0.route = route }
    if let block {
      source.details.withLock { details in
        _ = details.listeners.add(for: "patch") { call(block, for: $0, serializer, isPatch: true) }
        _ = details.listeners.add(for: "message") { call(block, for: $0, serializer, isPatch: false) }
        details.failureBlock = { block(nil, $0) }
      }
    }
    try source.open()
    return source
  }

  /// Reads an event.
  ///
  /// - Parameter isPatch: Whether the server says that the event is a patch. Another event is ignored unless it is one.
  /// - Returns: The call of the block, or `nil` if the event is not for the block.
  private static func call(
    _ block: @escaping Block, for event: AFServerSentEvent, _ serializer: AFJSONPatchResponseSerializer, isPatch: Bool
  ) -> (() -> Void)? {
    let problem = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
    let object = serializer.responseObject(for: nil, data: event.data, error: problem)
    if let operations = object as? [AFJSONPatchOperation] { return { block(operations, problem.pointee) } }
    guard isPatch else { return nil }
    if let error = problem.pointee { return { block(nil, error) } }
    return { block(nil, AFJSONPatchError(.notAPatch)) }
  }
}
