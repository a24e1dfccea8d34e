import Dispatch
import Foundation
import LarkspurBytes

/// A load by a program's protocol: the queue on which the protocol is called, and its events.
///
/// ```
///   find -> start -> (events) -> stop
/// ```
///
/// Invariant: one `stopLoading()` for each `startLoading()`, after it, on the same queue.
final class ProtocolLoad: @unchecked Sendable {
  private let queue = DispatchQueue(label: "larkspur.url-protocol")
  private let type: URLProtocol.Type
  let client: ProtocolClient
  // Used on `queue` only.
  private var instance: URLProtocol?

  private init(_ type: URLProtocol.Type, _ request: URLRequest) {
    self.type = type
    client = ProtocolClient(request)
  }

  /// Asks protocol classes, in their order, whether they load the task's present request.
  ///
  /// - Parameter request: The request. The load gets its canonical form.
  /// - Returns: A question. Its answer is the load, or `nil` if no class takes the request.
  static func find(
    among classes: [URLProtocol.Type], for task: URLSessionTask, _ request: URLRequest
  ) -> OneShot<ProtocolLoad?> {
    let question = OneShot<ProtocolLoad?>()
    questions.async {
      let type = classes.first { $0.canInit(with: task) }
      // The load, with its queue, is created only if a class takes the request, because most requests may not need it.
      question.set(type.map { ProtocolLoad($0, $0.canonicalRequest(for: request)) })
    }
    return question
  }

  /// The queue on which classes are asked: their methods may block, and must not delay a loop.
  private static let questions = DispatchQueue(label: "larkspur.url-protocol-classes", attributes: .concurrent)

  /// Starts the protocol, on its queue, when it is its turn.
  ///
  /// - Parameter cache: The cache in which the protocol may find a stored response.
  func start(for task: URLSessionTask, cache: URLCache?, in turns: ProtocolTurns, _ turn: Int) {
    turns.start(turn) { [self] in
      queue.async { [self] in
        defer { turns.end(turn) }
        // The load has been cancelled before its start.
        guard !client.isClosed else { return }
        let cached = cache?.cachedResponse(for: client.request)
        let instance = type.init(task: task, cachedResponse: cached, client: client)
        self.instance = instance
        instance.startLoading()
        client.startReturned()
      }
    }
  }

  /// Stops the protocol. Its later events have no effect.
  ///
  /// - Parameter waits: Whether to return only when `stopLoading()` has returned.
  func stop(waits: Bool) async {
    client.close()
    guard waits else { return queue.async { [self] in stopOnQueue() } }
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        stopOnQueue()
        continuation.resume()
      }
    }
  }

  private func stopOnQueue() { instance.take()?.stopLoading() }

  /// Stores a response, and returns when that is done. A program's subclass of the cache may take long.
  static func store(_ response: CachedURLResponse, for request: URLRequest, in cache: URLCache) async {
    await withCheckedContinuation { continuation in
      questions.async {
        cache.storeCachedResponse(response, for: request)
        continuation.resume()
      }
    }
  }

  /// Runs `call` on the protocol's queue.
  func call(_ call: @escaping @Sendable () -> Void) { queue.async(execute: call) }
}
