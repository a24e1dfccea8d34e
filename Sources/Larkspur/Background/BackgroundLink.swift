import Foundation
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The way from a configuration to the runner of its background session: the transfer service of the user, or an object
/// of this process if there is no service.
enum BackgroundLink {
  /// Connects a session with the journal in `directory`.
  static func open(
    _ configuration: URLSessionConfiguration, in directory: String
  ) throws(TransferLinkError) -> any TransferLink {
    let storage = configuration.storage
    let identifier = storage.identifier ?? ""
    var session = TransferSession(identifier: identifier, directory: directory, settings: [])
    session.launchCommand = storage.settings.sessionSendsLaunchEvents ? launchCommand(storage) : []
    var refusal: String?
    do throws(TransferLinkError) {
      if storage.transferStateHome == nil, let client = try service(&session, configuration, &refusal) { return client }
      let runner = try TransferRunner(session, configuration, log: log)
      if !session.settings.isEmpty { keep(session) }
      return runner
    } catch .inUse where refusal != nil {
      // A service that does not answer, or of another version, has the journals of its sessions.
      throw .unavailable(
        reason: """
          the transfers of background session \"\(identifier)\" belong to a process that cannot be asked: \(refusal ?? "")
          """)
    }
  }

  /// The launch command with the absolute path of its program: the service has another directory and `PATH`.
  private static func launchCommand(_ storage: URLSessionConfiguration.Storage) -> [String] {
    guard let word = storage.launchCommand.first else { return [] }
    guard let path = ServiceLauncher().path(of: word) else {
      log("background session \"\(storage.identifier ?? "")\" is not launched: no program \(word) is in PATH")
      return []
    }
    return [path] + storage.launchCommand.dropFirst()
  }

  /// Connects with the service, and starts it if it does not run.
  ///
  /// - Parameter refusal: Gets the reason why there is no service.
  /// - Returns: `nil` if the tasks have to be carried out in this process.
  /// - Throws: `inUse`.
  private static func service(
    _ session: inout TransferSession, _ configuration: URLSessionConfiguration, _ refusal: inout String?
  ) throws(TransferLinkError) -> TransferClient? {
    do throws(TransferLinkError) {
      session.settings = try TransferService.settings(of: configuration, log: log)
      return try ServiceLauncher().open(session)
    } catch .inUse {
      throw .inUse
    } catch {
      refusal = "\(error)"
      log("background session \"\(session.identifier)\" is carried out in this process: \(error)")
      return nil
    }
  }

  /// Writes the settings beside the journal, for `larkspur transfers` and for a service that comes later.
  private static func keep(_ session: TransferSession) {
    do throws(TransferJournalError) {
      try TransferSessionFile.write(session)
    } catch {
      log("the settings of background session \"\(session.identifier)\" cannot be written: \(error)")
    }
  }

  /// Returns the error of all tasks of a session without a runner.
  static func error(_ error: TransferLinkError, _ identifier: String) -> URLError {
    switch error {
    case .inUse:
      .make(
        .backgroundSessionInUseByAnotherProcess,
        "another session, of this process or of another one, has the background identifier \"\(identifier)\"")
    case .unavailable(let reason): .make(.backgroundSessionWasDisconnected, reason)
    }
  }

  /// The directory of a session's journal.
  static func directory(_ storage: URLSessionConfiguration.Storage) throws(URLError) -> String {
    guard let stateHome = storage.transferStateHome ?? TransferLocation.stateHome() else {
      throw URLError.make(
        .backgroundSessionWasDisconnected,
        "background sessions need a directory for their state: neither XDG_STATE_HOME nor HOME is an absolute path")
    }
    let identifier = storage.identifier ?? ""
    if let container = storage.settings.sharedContainerIdentifier {
      return TransferLocation.directory(stateHome: stateHome, container: container, session: identifier)
    }
    let program = ProcessInfo.processInfo.processName
    return TransferLocation.directory(stateHome: stateHome, program: program, session: identifier)
  }

  /// The largest identifier of a task that has left any file in the session's directory. A record that cannot be read must
  /// not be replaced by another task's.
  static func lastTask(in directory: String) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return names.compactMap { TransferFileName($0)?.task }.max() ?? 0
  }

  /// Writes a line to the standard error stream.
  static func log(_ line: String) { try? OpenFile.standardError.write("larkspur: \(line)\n") }
}

/// The transfer service's part that belongs to this module: the runners of sessions whose settings have travelled.
package enum TransferService {
  /// Returns the settings of a session's configuration as bytes, for `TransferSession`.
  ///
  /// - Parameter log: Gets a line for each part of the configuration that cannot travel.
  /// - Throws: `unavailable` if the settings are too large.
  package static func settings(
    of configuration: URLSessionConfiguration, log: (String) -> Void
  ) throws(TransferLinkError) -> [UInt8] {
    do throws(TransferValueError) {
      let encoded = try SessionSettings.encoded(configuration)
      let name = configuration.identifier ?? ""
      for part in encoded.leftBehind {
        log("the transfer service carries out background session \"\(name)\" without \(part)")
      }
      return encoded.bytes
    } catch {
      throw .unavailable(reason: "the settings of the session: \(error)")
    }
  }

  /// Makes the runner of a session from its settings.
  ///
  /// - Parameter log: Gets messages as text, which quotes no fields of requests.
  /// - Throws: `unavailable` if the settings cannot be read, and the errors of the runner.
  package static func runner(
    of session: TransferSession, log: @escaping @Sendable (String) -> Void
  ) throws(TransferLinkError) -> any TransferLink {
    let configuration = Result { () throws(TransferValueError) in
      try SessionSettings.configuration(from: session.settings, identifier: session.identifier)
    }.mapError { TransferLinkError.unavailable(reason: "the settings of the session: \($0)") }
    return try TransferRunner(session, configuration.get(), log: log)
  }
}

/// The background sessions of this process that have been invalidated and have not released their identifiers.
///
/// A program may make a session again at once. The new session then waits for the earlier one, whose delegate calls may
/// come on the thread that makes the new one.
enum EndingSessions {
  private static let directories = Mutex<[String: Int]>([:])

  static func add(_ directory: String) { directories.withLock { $0[directory, default: 0] += 1 } }

  static func remove(_ directory: String) {
    directories.withLock { directories in
      let count = (directories[directory] ?? 1) - 1
      directories[directory] = count > 0 ? count : nil
    }
  }

  static func count(_ directory: String) -> Int { directories.withLock { $0[directory] ?? 0 } }
}
