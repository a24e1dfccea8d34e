import Foundation
import LarkspurHTTP
import LarkspurTransport

/// The disposition of a response: the data task continues, ends, or becomes a download or a stream.
extension Load {
  func decideDisposition(of response: URLResponse) async throws(URLError) {
    guard let dataTask = task as? URLSessionDataTask, needsCall(.response) else { return }
    let disposition = try await askDelegate(otherwise: URLSession.ResponseDisposition.allow) {
      session, delegate, answer in
      guard let delegate = delegate as? any URLSessionDataDelegate else { return false }
      delegate.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: answer)
      return true
    }
    switch disposition {
    case .allow: break
    case .cancel: throw URLError.make(.cancelled, "cancelled")
    case .becomeDownload:
      let download = TaskDownload()
      try await openFile(of: download, for: response)
      self.download = download
      await becomeDownload()
    case .becomeStream: try await becomeStream()
    }
  }

  /// A new stream task takes the place of the data task, with the connection, and the delegate is notified.
  private func becomeStream() async throws(URLError) {
    guard let old = task as? URLSessionDataTask, let load = networkLoad,
      let tunnel = running?.exchange.connection.takeStream()
    else {
      throw URLError.make(.resourceUnavailable, "a response from the cache has no connection to become a stream")
    }
    endExchange()
    let new = URLSessionStreamTask(core, host: load.target.host, port: Int(load.target.port))
    stopIdleTime()
    live = new.load(over: tunnel)
    takeOver(old, by: new)
    await notifyOfReplacement(of: old) { $1.urlSession($0, dataTask: old, didBecome: new) }
  }

  /// A new download task takes the place of the data task, and the delegate is notified.
  private func becomeDownload() async {
    guard let old = task as? URLSessionDataTask else { return }
    let new = URLSessionDownloadTask(core, request: old.originalRequest, output: .delegate)
    takeOver(old, by: new)
    await notifyOfReplacement(of: old) { $1.urlSession($0, dataTask: old, didBecome: new) }
  }

  /// Notifies the delegate that another task has taken the place of `old`.
  private func notifyOfReplacement(
    of old: URLSessionDataTask, _ call: @escaping @Sendable (URLSession, any URLSessionDataDelegate) -> Void
  ) async {
    await notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionDataDelegate else { return false }
      // The default implementation of the method reports the old task.
      return old.methodProbe.isImplemented(by: delegate) {
        call(session, delegate)
        return true
      }
    }
  }

  /// Continues the load as another task.
  private func takeOver(_ old: URLSessionTask, by new: URLSessionTask) {
    // One step, under the task's lock: a suspension or cancellation of the old task before it carries over to the new
    // task; later ones have no effect.
    let details = old.read { details in
      defer {
        details.load = nil
        details.state = .completed
      }
      return details
    }
    new.read {
      // A `resume()` that is notifying the delegate at this moment finds the old task complete.
      $0.state = details.isResuming ? .running : details.state
      $0.hasStarted = true
      $0.suspensions = details.suspensions
      $0.adopt(details.shown)
      $0.delegate = details.delegate
      $0.description = details.description
      $0.priority = details.priority
      $0.earliestBeginDate = details.earliestBeginDate
      $0.clientExpectsToSend = details.clientExpectsToSend
      $0.clientExpectsToReceive = details.clientExpectsToReceive
      $0.progress = details.progress
      $0.load = self
    }
    if let progress = details.progress { new.isSteered(by: progress) }
    core.replace(old, by: new, of: session)
    continues(as: new)
    if details.isResuming { suspensionChanged(of: new) }
  }
}
