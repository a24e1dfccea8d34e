import BenchmarkUsage
import Foundation
import Larkspur

/// WebSockets whose messages the server sends back, each one when its message before has come back.
struct Echo: Sendable {
  private let message: Data
  private let sockets: [URLSessionWebSocketTask]

  init(_ workload: Workload, to url: URL, by session: URLSession) {
    message = Data(repeating: UInt8(ascii: "m"), count: workload.bodyBytes)
    sockets = (0..<workload.tasks).map { _ in session.webSocketTask(with: url) }
  }

  /// Opens the connections.
  func open() async throws {
    for socket in sockets {
      socket.resume()
      try await socket.sendPing()
    }
  }

  /// Sends and receives `count` messages over all connections together.
  func run(_ count: Int) async throws {
    guard sockets.count > 1 else {
      for _ in 0..<count { try await echo(over: sockets[0]) }
      return
    }
    let left = Counter(count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for socket in sockets {
        group.addTask { while left.take() { try await echo(over: socket) } }
      }
      try await group.waitForAll()
    }
  }

  private func echo(over socket: URLSessionWebSocketTask) async throws {
    try await socket.send(.data(message))
    guard case .data(let data) = try await socket.receive(), data.count == message.count else {
      throw Failure(description: "the echo is not as long as the message")
    }
  }
}
