import Foundation
import LarkspurEngine

/// The events of a load for the session's observer.
extension Load {
  /// Reports an event, which is made only if there is an observer.
  @inline(__always)
  func note(_ kind: @autoclosure () -> HTTPEvent.Kind) {
    if let observer = engine.observer {
      observer.observe(HTTPEvent(kind(), task: identifier, at: engine.loop.kernel.now()))
    }
  }

  /// Reports that a request is about to be sent.
  @inline(__always)
  func note(_ request: URLRequest, isFirst: Bool = false) {
    if engine.observer == nil { return }
    let (method, url) = (request.httpMethod ?? "GET", request.url?.absoluteString ?? "")
    note(isFirst ? .started(method: method, url: url) : .request(method: method, url: url))
  }
}
