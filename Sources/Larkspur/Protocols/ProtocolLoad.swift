import Dispatch
import Foundation

/// One load by a program's protocol: the queue where the protocol is called, and what it has told.
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
  // The queue's.
  private var instance: URLProtocol?

  private init(_ type: URLProtocol.Type, _ request: URLRequest) {
    self.type = type
    client = ProtocolClient(request)
  }

  /// Nil: none of the classes loads what the task loads at present.
  ///
  /// - Parameter request: What they are offered; the load gets its canonical form.
  static func find(
    among classes: [URLProtocol.Type], for task: URLSessionTask, _ request: URLRequest
  ) -> Question<ProtocolLoad?> {
    let question = Question<ProtocolLoad?>()
    questions.async {
      let type = classes.first { $0.canInit(with: task) }
      // The load's own queue is not made for requests that no class wants: there may be many.
      question.answer(type.map { ProtocolLoad($0, $0.canonicalRequest(for: request)) })
    }
    return question
  }

  /// Classes are asked here: their methods may block, and must not hold up a loop.
  private static let questions = DispatchQueue(label: "larkspur.url-protocol-classes", attributes: .concurrent)

  /// - Parameter cache: Where the protocol may find what is stored.
  func start(for task: URLSessionTask, cache: URLCache?) {
    queue.async { [self] in
      // Cancelled before it could begin.
      guard !client.isClosed else { return }
      let cached = cache?.cachedResponse(for: client.request)
      let instance = type.init(task: task, cachedResponse: cached, client: client)
      self.instance = instance
      instance.startLoading()
      client.startReturned()
    }
  }

  /// Nothing more is heard of the protocol.
  ///
  /// - Parameter waits: Return only when `stopLoading()` has returned.
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

  /// Returns when it is done: a cache of the program's own may take its time.
  static func store(_ response: CachedURLResponse, for request: URLRequest, in cache: URLCache) async {
    await withCheckedContinuation { continuation in
      questions.async {
        cache.storeCachedResponse(response, for: request)
        continuation.resume()
      }
    }
  }

  /// Makes a call where the protocol is called.
  func call(_ call: @escaping @Sendable () -> Void) { queue.async(execute: call) }
}
