import Larkspur
import LarkspurConsole
import LarkspurIO
import LarkspurTransferServer
import LarkspurTransfers

/// `larkspur transfers`: the transfer service, and the user's view of it.
struct Transfers {
  private let options: TransfersOptions
  private let launcher = ServiceLauncher()

  init(_ options: TransfersOptions) { self.options = options }

  func run() -> ExitStatus {
    do throws(CommandFailure) {
      switch options.action {
      case .run: try serve()
      case .list: Console.print(TransferList(sessions: try sessions()).text)
      case .pause: try change(.pause)
      case .resume: try change(.resume)
      case .cancel: try change(.cancel)
      case .log: try showLog()
      case .deliver: return BackgroundDownloads().deliver()
      }
      return .success
    } catch {
      return error.report()
    }
  }

  private static func failure(_ message: String) -> CommandFailure { CommandFailure(.transfersFailed, message) }

  private func stateHome() throws(CommandFailure) -> String {
    if let home = TransferLocation.stateHome() { return home }
    throw Self.failure("neither XDG_STATE_HOME nor HOME is an absolute path")
  }

  private func serviceDirectory() throws(CommandFailure) -> String {
    if let directory = TransferLocation.service() { return directory }
    throw Self.failure("neither XDG_RUNTIME_DIR, XDG_STATE_HOME nor HOME is an absolute path")
  }

  // MARK: - The service

  /// The number of descriptors that the service may have. The programs that it launches may have as many.
  private static let descriptors = 65_536

  private func serve() throws(CommandFailure) {
    let home = try stateHome()
    let log = makeLog(home)
    let directory = try serviceDirectory()
    // Each task has a connection and a file, and the usual limit is 1,024.
    do throws(Errno) { try DescriptorLimit.raise(to: Self.descriptors) } catch {
      log("the number of descriptors stays small: \(error)")
    }
    var options = TransferServer.Options()
    options.idleTime = self.options.idleTime
    options.log = log
    options.launch = { [launcher] session in
      do throws(TransferLinkError) { try launcher.launch(session) } catch {
        log("the program of session \"\(session.identifier)\" was not started: \(error)")
      }
    }
    do throws(TransferServerError) {
      var isRemoved = false
      repeat {
        let server = try TransferServer(directory: directory, stateHome: home, options: options) {
          (session) throws(TransferLinkError) in try TransferService.runner(of: session, log: log)
        }
        log("the service \(LarkspurCommand.version) has started")
        // Without a reachable socket no program could have its sessions. At the end of a login there is no place for
        // another socket, and the next service continues.
        isRemoved = try server.run { Self.unfinished(home, log) } == .removed
        log("the service has ended: \(isRemoved ? "its socket was removed" : "there was nothing to do")")
      } while isRemoved
    } catch {
      log("\(error)")
      throw Self.failure("\(error)")
    }
  }

  /// A service without its log is better than none.
  private func makeLog(_ home: String) -> @Sendable (String) -> Void {
    do throws(Errno) {
      let log = try ServiceLog(directory: home + "/larkspur")
      return { line in
        log.add(line)
        Console.note(line)
      }
    } catch {
      Console.complain("\(home)/larkspur: \(error)")
      return { Console.note($0) }
    }
  }

  /// The sessions of all programs that have unfinished tasks, or events for which their program should be launched.
  private static func unfinished(_ home: String, _ log: @Sendable (String) -> Void) -> [TransferSession] {
    do throws(Errno) {
      let found = try TransferLocation.sessions(stateHome: home)
      for problem in found.problems { log("\(problem.directory): \(problem.reason)") }
      return found.sessions.filter { session in
        let records = (try? TransferJournalReader.content(of: session))?.records ?? []
        return records.contains {
          $0.state == .running || $0.state == .canceling || !session.launchCommand.isEmpty && $0.hasUnreportedEnd
        }
      }
    } catch {
      log("\(home)/larkspur: \(error)")
      return []
    }
  }

  // MARK: - The user's view

  private func sessions() throws(CommandFailure) -> [TransferList.Session] {
    let (home, directory) = (try stateHome(), try serviceDirectory())
    var served: [TransferAdministrator.Session] = []
    do throws(TransferLinkError) {
      // The progress of running tasks is in the service.
      served = try TransferAdministrator(directory: directory).sessions() ?? []
    } catch {
      Console.complain("\(error)")
    }
    var sessions: [TransferList.Session] = []
    do throws(Errno) {
      let found = try TransferLocation.sessions(stateHome: home)
      for problem in found.problems { Console.complain("\(problem.directory): \(problem.reason)") }
      for session in found.sessions {
        do throws(TransferJournalError) {
          let known = served.first { $0.session.directory == session.directory }?.records ?? []
          let content = try TransferJournalReader.content(of: session, without: Set(known.map(\.task)))
          sessions.append(
            TransferList.Session(session: session, records: content.records, unreadable: content.unreadable))
        } catch .unavailable(.noSuchFile) {
          // The session has been released meanwhile.
        } catch {
          Console.complain("\(session.directory): \(error)")
        }
      }
    } catch {
      throw Self.failure("\(home)/larkspur: \(error)")
    }
    for served in served {
      let index =
        sessions.firstIndex { $0.session.directory == served.session.directory } ?? sessions.endIndex
      if index == sessions.endIndex {
        let session = TransferSession(
          identifier: served.session.identifier, directory: served.session.directory, settings: [])
        sessions.append(TransferList.Session(session: session, records: []))
      }
      sessions[index].records = served.records
      sessions[index].isServed = true
      sessions[index].isAttached = served.session.isAttached
    }
    return sessions
  }

  private func change(_ change: TransferAdministration.Change) throws(CommandFailure) {
    let sessions = try sessions().filter {
      $0.session.identifier == options.session || $0.session.directory == options.session
    }
    guard let session = sessions.first?.session else {
      throw Self.failure("no session \(options.session)")
    }
    guard sessions.count == 1 else {
      let list = sessions.map(\.session.directory).joined(separator: ", ")
      throw Self.failure("several programs have such a session; name its directory: \(list)")
    }
    let tasks: TransferAdministration.Tasks = options.tasks.isEmpty ? .all : .some(options.tasks)
    do throws(TransferLinkError) {
      let count = try launcher.administer(change, directory: session.directory, tasks: tasks)
      Console.print(count == 1 ? "1 task\n" : "\(count) tasks\n")
    } catch {
      throw Self.failure("\(error)")
    }
  }

  private func showLog() throws(CommandFailure) {
    let home = try stateHome()
    do throws(Errno) {
      let lines = try ServiceLog(directory: home + "/larkspur").text().split(separator: "\n")
      Console.print(lines.map { Format.visible($0.utf8) + "\n" }.joined())
    } catch {
      throw Self.failure("\(home)/larkspur: \(error)")
    }
  }
}
