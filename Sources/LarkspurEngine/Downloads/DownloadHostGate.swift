import LarkspurBytes
import Synchronization

/// The limit of a process's downloads: how many of their requests run at once for each host, whichever session or client
/// sends them. Requests that wait get their turn in order.
package final class DownloadHostGate: Sendable {
  static let shared = DownloadHostGate(requestsMax: 16)
  /// The limit of download tasks that load their files in segments at once, each with a thread. All use the host "".
  package static let tasks = DownloadHostGate(requestsMax: 64)

  private struct Host {
    var running = 0
    var waiters: [OneShot<Void>] = []
  }

  private let requestsMax: Int
  /// The hosts with requests.
  private let hosts = Mutex<[String: Host]>([:])

  package init(requestsMax: Int) { self.requestsMax = requestsMax }

  /// Runs `body` when its turn comes. Does not run it if the task is cancelled before.
  package func run(at host: String, _ body: () async -> Void) async {
    guard await enter(host) else { return }
    await body()
    leave(host)
  }

  /// The number of requests that wait for their turn at a host.
  package func waiterCount(at host: String) -> Int { hosts.withLock { $0[host]?.waiters.count ?? 0 } }

  /// Waits for a turn, which `leave` ends.
  ///
  /// - Parameter waiter: Its cancellation ends the wait.
  /// - Returns: `false` if the waiter or the task was cancelled before.
  package func enter(_ host: String, _ waiter: OneShot<Void> = OneShot()) async -> Bool {
    let isFree = hosts.withLock { hosts in
      guard hosts[host, default: Host()].running >= requestsMax else {
        hosts[host, default: Host()].running += 1
        return true
      }
      hosts[host]?.waiters.append(waiter)
      return false
    }
    if isFree { return true }
    let turn: Void? = await withTaskCancellationHandler {
      await waiter.get()
    } onCancel: {
      waiter.cancel()
    }
    if turn == nil { hosts.withLock { $0[host]?.waiters.removeAll { $0 === waiter } } }
    return turn != nil
  }

  /// Passes the place to the first waiter that still waits.
  package func leave(_ host: String) {
    hosts.withLock { hosts in
      while let waiter = hosts[host]?.waiters.first {
        hosts[host]?.waiters.removeFirst()
        waiter.set(())
        // The value of a waiter that was cancelled before is not set.
        if waiter.value != nil { return }
      }
      hosts[host]?.running -= 1
      if hosts[host]?.running == 0 { hosts[host] = nil }
    }
  }

  /// Returns the host and port of a URL as they are written in it, in lower case.
  package static func host(of url: String) -> String {
    let scheme = url.utf8.prefix { $0 != UInt8(ascii: ":") }
    let rest = url.utf8.dropFirst(scheme.count + 3)
    let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    let user = authority.lastIndex(of: UInt8(ascii: "@")).map { authority.index(after: $0) } ?? authority.startIndex
    return String(Substring(authority[user...])).asciiLowercased
  }
}
