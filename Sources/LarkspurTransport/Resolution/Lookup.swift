import LarkspurIO

/// Look-ups of host names, each on a thread of its own, because the system's resolver blocks.
enum Lookup {
  enum Outcome: Sendable {
    case found([SocketAddress])
    case failed(String)
    case unavailable(Errno)
  }

  /// The thread ends by itself, whether somebody still waits for its answer or not.
  static func start(host: String, port: UInt16) throws(Errno) -> Answer<Outcome> {
    let answer = Answer<Outcome>()
    let thread = try SystemThread(name: "larkspur-lookup") {
      do throws(NameLookup.Failure) {
        answer.finish(.answered(.found(try NameLookup.addresses(of: host, port: port))))
      } catch {
        switch error {
        case .failed(let reason): answer.finish(.answered(.failed(reason)))
        case .unavailable(let error): answer.finish(.answered(.unavailable(error)))
        }
      }
    }
    thread.detach()
    return answer
  }
}
