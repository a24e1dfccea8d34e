import Foundation
import LarkspurIO
import LarkspurTransfers

/// The way from a configuration to the executor of its background session.
enum BackgroundLink {
  /// - Throws: The error of all tasks of the session.
  static func open(_ configuration: URLSessionConfiguration) throws(URLError) -> any TransferLink {
    let storage = configuration.storage
    let identifier = storage.identifier ?? ""
    guard let directory = directory(storage, identifier) else {
      throw URLError.make(
        .backgroundSessionWasDisconnected,
        "background sessions need a directory for their state: neither XDG_STATE_HOME nor HOME is an absolute path")
    }
    let session = TransferSession(identifier: identifier, directory: directory, settings: [])
    do throws(TransferLinkError) {
      return try TransferExecutor(session, configuration, log: log)
    } catch {
      throw failure(error, identifier)
    }
  }

  private static func failure(_ error: TransferLinkError, _ identifier: String) -> URLError {
    switch error {
    case .inUse:
      .make(
        .backgroundSessionInUseByAnotherProcess,
        "another session, of this process or of another one, has the background identifier \"\(identifier)\"")
    case .unavailable(let reason): .make(.backgroundSessionWasDisconnected, reason)
    }
  }

  private static func directory(_ storage: URLSessionConfiguration.Storage, _ identifier: String) -> String? {
    guard let stateHome = storage.transferStateHome ?? TransferLocation.stateHome() else { return nil }
    if let container = storage.sharedContainerIdentifier {
      return TransferLocation.directory(stateHome: stateHome, container: container, session: identifier)
    }
    let program = ProcessInfo.processInfo.processName
    return TransferLocation.directory(stateHome: stateHome, program: program, session: identifier)
  }

  /// Writes a line to the standard error stream.
  static func log(_ line: String) { try? OpenFile.standardError.write("larkspur: \(line)\n") }
}
