import Larkspur
import Logging

/// Writes the events of a session into a log, without secrets.
public struct LogObserver: HTTPEventObserver {
  private let logger: Logger

  public init(_ logger: Logger) { self.logger = logger }

  public func observe(_ event: HTTPEvent) {
    var metadata: Logger.Metadata = [:]
    if let task = event.task { metadata["task"] = "\(task)" }
    if let connection = event.connection { metadata["connection"] = "\(connection)" }
    switch event.redacted.kind {
    case .started(let method, let url): logger.info("started", metadata: metadata + ["method": method, "url": url])
    case .request(let method, let url): logger.debug("request", metadata: metadata + ["method": method, "url": url])
    case .cache(let use): logger.debug("cache", metadata: metadata + ["use": "\(use)"])
    case .retry(let delay): logger.notice("retry", metadata: metadata + ["delay": "\(delay)"])
    case .ended(let error?): logger.warning("failed", metadata: metadata + ["error": error])
    case .ended(nil): logger.info("ended", metadata: metadata)
    case .connection(.connectFailed(let address, let error)):
      logger.debug("could not connect", metadata: metadata + ["address": "\(address)", "error": "\(error)"])
    case .connection(.connected(let address)):
      logger.debug("connected", metadata: metadata + ["address": "\(address)"])
    case .connection(.headReceived(let status, _)):
      logger.debug("response", metadata: metadata + ["status": "\(status)"])
    case .connection(.closed): logger.debug("connection closed", metadata: metadata)
    case .connection: break
    }
  }
}

private func + (metadata: Logger.Metadata, more: [String: String]) -> Logger.Metadata {
  metadata.merging(more.mapValues { .string($0) }) { $1 }
}
