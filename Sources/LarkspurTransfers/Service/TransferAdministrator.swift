import LarkspurBytes
import LarkspurIO

/// Asks the user's transfer service for its sessions, and changes their tasks. All functions block until the service has
/// answered, and throw `unavailable` if it has not done so in time.
public struct TransferAdministrator: Sendable {
  /// A session of the service, with its tasks.
  public struct Session: Hashable, Sendable {
    public var session: TransferServedSession
    public var records: [TransferRecord]
  }

  /// The time for the answer of a service, which may have to read a journal of 64 MiB first.
  public static let usualTimeout = Duration.seconds(10)

  private let path: String
  private let timeout: Duration

  /// - Parameters:
  ///   - path: The directory of the service's socket: see `TransferLocation.service`.
  ///   - timeout: The time for the whole answer.
  public init(directory path: String, timeout: Duration = Self.usualTimeout) {
    self.path = path
    self.timeout = timeout
  }

  /// Returns the sessions that the service carries out, or `nil` if no service runs, or one that ends.
  public func sessions() throws(TransferLinkError) -> [Session]? {
    var sessions: [Session] = []
    let count = try ask(.list) { message in
      switch message {
      case .serves(let session) where sessions.count < TransferLocation.directoriesMax:
        sessions.append(Session(session: session, records: []))
        return true
      case .records(let records):
        guard let last = sessions.indices.last,
          sessions[last].records.count + records.count <= TransferSession.tasksMax
        else { return false }
        sessions[last].records += records
        return true
      default: return false
      }
    }
    return count.map { _ in sessions }
  }

  /// Changes tasks of the session with the journal in `directory`.
  ///
  /// - Returns: The number of tasks that were changed, or `nil` if no service runs or the service is ending. The caller
  ///   may start a new service and ask it.
  public func change(
    _ change: TransferAdministration.Change, directory: String, tasks: TransferAdministration.Tasks
  ) throws(TransferLinkError) -> Int? {
    try ask(.change(change, directory: directory, tasks: tasks)) { _ in false }
  }

  /// Asks, and passes all messages before `done` on.
  private func ask(
    _ request: TransferAdministration, _ receive: (TransferMessage) -> Bool
  ) throws(TransferLinkError) -> Int? {
    let deadline = LinuxKernel.shared.now().advanced(by: timeout)
    let socket: BlockingSocket
    do throws(TransferClient.Failure) {
      socket = try TransferClient.connect(in: path, until: deadline)
    } catch .refused(let error) {
      throw error
    } catch {
      return nil
    }
    do throws(TransferValueError) {
      let frame = try TransferMessage.administer(request).encoded()
      // A service that has ended, or does not read, shows in the answer.
      _ = try? socket.send(frame.span, until: deadline)
    } catch {
      throw .unavailable(reason: "\(error)")
    }
    var reader = TransferReader(socket, until: deadline)
    var hasAnswered = false
    while true {
      let message: TransferMessage?
      do throws(TransferChannelError) {
        message = try reader.next()
      } catch .broken(.timedOut) {
        throw TransferClient.silence
      } catch {
        throw .unavailable(reason: "the transfer service: \(error)")
      }
      switch message {
      case nil where !hasAnswered: return nil
      case nil: throw .unavailable(reason: "the transfer service has ended")
      case .done(let count): return count
      case .refused(let error): throw error
      case .some(let message):
        hasAnswered = true
        guard receive(message) else { throw .unavailable(reason: "the transfer service answers something else") }
      }
    }
  }
}
