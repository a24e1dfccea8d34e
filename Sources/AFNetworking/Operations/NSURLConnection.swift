import Foundation
import Larkspur

/// What the blocks of request operations are given as the connection that they are called for.
///
/// It stands for the load of an operation's request, on its way through redirections. It cannot be made, and loads
/// nothing by itself: new code uses `URLSession`. Immutable, and for any thread.
public final class NSURLConnection: NSObject, Sendable {
  private let task: URLSessionTask

  init(_ task: URLSessionTask) { self.task = task }

  /// The request that the operation has made.
  public var originalRequest: URLRequest { task.originalRequest ?? currentRequest }

  /// The request that is loaded at present: after redirections another one.
  public var currentRequest: URLRequest {
    task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
  }

  /// Ends the load, and the operation with it, with `URLError.cancelled`.
  public func cancel() { task.cancel() }
}
