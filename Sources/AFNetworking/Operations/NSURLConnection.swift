import Foundation
import Larkspur

/// The connection that a request operation passes to its blocks.
///
/// Stands for the load of the operation's request, including its redirections. Programs cannot create a connection,
/// and it loads nothing itself: new code uses `URLSession`. Immutable, and safe to use from any thread.
public final class NSURLConnection: NSObject, Sendable {
  private let task: URLSessionTask

  init(_ task: URLSessionTask) { self.task = task }

  /// The operation's request.
  public var originalRequest: URLRequest { task.originalRequest ?? currentRequest }

  /// The request that is currently loaded: after a redirection, the latest one.
  public var currentRequest: URLRequest {
    task.currentRequest ?? URLRequest(url: URL(fileURLWithPath: "/"))
  }

  /// Cancels the load, and so ends the operation with `URLError.cancelled`.
  public func cancel() { task.cancel() }
}
