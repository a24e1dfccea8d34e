// The memory of very many WebSockets that do nothing.
//
//   TestHelper idle-sockets URL COUNT    opens COUNT WebSockets, prints the growth of the resident memory in bytes for
//                                        each of them, and then the number of those that answer a ping

import Foundation
import Glibc
import Larkspur

// glibc declares this function in a header that Swift's Glibc module does not have.
@_silgen_name("malloc_trim")
private func mallocTrim(_ kept: Int) -> Int32

/// The number of handshakes at the same time.
private let handshakes = 64
/// The number of connections before the first measurement, which make what all connections share.
private let firstCount = 256

func runIdleSockets(_ arguments: [String]) async throws {
  guard arguments.count == 2, let url = URL(string: arguments[0]), let count = Int(arguments[1]), count > 0 else {
    throw Failure.wrongArguments
  }
  try raiseDescriptorLimit()
  let configuration = URLSessionConfiguration.ephemeral
  configuration.httpMaximumConnectionsPerHost = handshakes
  let session = URLSession(configuration: configuration)
  let first = try await openSockets(firstCount, url, session)
  let before = residentBytes()
  let sockets = try await openSockets(count, url, session)
  say("\((residentBytes() - before) / count)")
  for socket in first + sockets { try await socket.sendPing() }
  say("\(sockets.count)")
}

/// Opens WebSockets. A pong shows that a WebSocket is open.
private func openSockets(
  _ count: Int, _ url: URL, _ session: URLSession
) async throws -> [URLSessionWebSocketTask] {
  try await withThrowingTaskGroup(of: [URLSessionWebSocketTask].self) { group in
    for first in 0..<handshakes {
      group.addTask {
        var sockets: [URLSessionWebSocketTask] = []
        for _ in stride(from: first, to: count, by: handshakes) {
          let socket = session.webSocketTask(with: url)
          socket.resume()
          try await socket.sendPing()
          sockets.append(socket)
        }
        return sockets
      }
    }
    return try await group.reduce(into: []) { $0 += $1 }
  }
}

private func residentBytes() -> Int {
  // What the handshakes have freed does not count.
  _ = mallocTrim(0)
  return statusKiB("VmRSS") * 1024
}

/// Raises the soft limit of descriptors to the hard one.
private func raiseDescriptorLimit() throws {
  let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  var limit = rlimit()
  guard getrlimit(kind, &limit) == 0 else { throw Failure("no limit of descriptors") }
  limit.rlim_cur = limit.rlim_max
  guard setrlimit(kind, &limit) == 0 else { throw Failure("the limit of descriptors cannot be raised") }
}
