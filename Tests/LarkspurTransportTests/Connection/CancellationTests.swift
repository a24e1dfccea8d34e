import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// Cancellation at every step of an exchange, and the exchanges that it must not affect.
@Suite struct CancellationTests {
  static let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  /// The way in which the exchange is cancelled.
  enum Way: CaseIterable {
    case task
    case canceller
  }

  /// Runs two exchanges over a connection whose kernel returns errors, and cancels at call `number`.
  ///
  /// - Returns: Number of kernel calls that were made.
  static func scenario(cancelAt number: Int, by way: Way) throws -> Int {
    let world = try ScriptedWorld()
    let kernel = world.kernel
    let canceller = Shared<Canceller?>(nil)
    let peer = kernel.peer()
    kernel.willConnect(.fails(.networkUnreachable), .later(nil))
    // The first socket fails, so this is the peer of the second one.
    let second = kernel.peer(1)
    second.setSendBytesMax(40)
    second.willFailToSend(.interrupted, .wouldBlock)
    second.willFailToReceive(.interrupted, .wouldBlock)
    let running = world.start {
      let connection = try await Connection.open(to: [address, address], on: world.loop)
      return try await connection.cancelledWithTask {
        var count = 0
        for _ in 0..<2 {
          let exchange = try await connection.send(request("POST", body: 100), body: Array(repeating: 0, count: 100))
          canceller.value = exchange.canceller
          count += try await exchange.collectBody(bytesMax: 1000).count
        }
        return count
      }
    }
    kernel.beforeCalls { call in
      guard call == number else { return }
      switch way {
      case .task: running.cancel()
      case .canceller: canceller.value?.cancel()
      }
    }
    for _ in 0..<3 {
      #expect(world.settle(), "call \(number)")
      second.send(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8), Array("ngth: 5\r\n\r\nhe".utf8), Array("llo".utf8))
    }
    second.close()
    #expect(world.settle(), "call \(number)")
    kernel.beforeCalls(nil)
    #expect(running.isOver, "call \(number)")
    // Either cancelled, or done before the cancellation. A second request to a server that has gone is refused.
    let isExpected =
      running.value == 10 || running.transportError == .cancelled
      || way == .task && running.transportError == .connectionClosed
    #expect(isExpected, "call \(number): \(String(describing: running.result))")
    #expect(!peer.isOpen)
    #expect(world.leftovers == [], "call \(number)")
    return kernel.calls
  }

  @Test(arguments: Way.allCases) func atEveryStep(way: Way) throws {
    var number = 1
    while number <= (try Self.scenario(cancelAt: number, by: way)) {
      number += 1
      guard number < 10_000 else { return }
    }
    #expect(number > 20)
  }

  @Test func closeWhileATaskWaits() throws {
    let world = try ScriptedWorld()
    let connection = Shared<Connection?>(nil)
    let running = world.run {
      connection.value = try await Connection.open(to: [address], on: world.loop)
      guard let opened = connection.value else { return }
      _ = try await opened.send(request())
    }
    let closing = world.run {
      connection.value?.close()
      connection.value = nil
    }
    #expect(closing.isOver)
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }

  /// A cancellation that arrives after its exchange has ended does nothing.
  @Test func aCancellationThatComesTooLate() throws {
    let world = try ScriptedWorld()
    let peer = world.kernel.peer()
    let mayGoOn = Event()
    let canceller = Shared<Canceller?>(nil)
    let running = world.start {
      let connection = try await Connection.open(to: [address], on: world.loop)
      let first = try await connection.send(request())
      canceller.value = first.canceller
      try await first.discardBody()
      try await mayGoOn.wait()
      return try await fetch(request(), over: connection)
    }
    world.tick(10)
    peer.send(Self.response)
    world.tick(10)
    // Cancels between the exchanges, and again during the second one.
    canceller.value?.cancel()
    world.tick(10)
    mayGoOn.fire()
    world.tick(10)
    canceller.value?.cancel()
    world.tick(10)
    peer.send(Self.response)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// If a task is cancelled after its exchange is complete, the next task's exchange on the connection continues.
  @Test func aTaskThatIsCancelledTooLate() throws {
    let world = try ScriptedWorld()
    let peer = world.kernel.peer()
    let connection = Shared<Connection?>(nil)
    let first = world.run {
      let opened = try await Connection.open(to: [address], on: world.loop)
      connection.value = opened
      try await opened.cancelledWithTask {
        _ = try await fetch(request(), over: opened)
        // The response is complete, and the connection is idle.
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    peer.send(Self.response)
    world.settle()
    #expect(first.isOver && first.error == nil)
    let second = world.run {
      guard let opened = connection.value else { return Outcome(status: 0, body: "") }
      connection.value = nil
      return try await fetch(request(), over: opened)
    }
    peer.send(Self.response)
    world.settle()
    #expect(second.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// A task that is cancelled before its request begins gets an error, and nothing is left behind.
  @Test func aTaskThatIsCancelledAlready() throws {
    let world = try ScriptedWorld()
    let running = world.run {
      let connection = try await Connection.open(to: [address], on: world.loop)
      withUnsafeCurrentTask { $0?.cancel() }
      return try await connection.cancelledWithTask { try await fetch(request(), over: connection) }
    }
    #expect(running.transportError == .cancelled)
    #expect(world.leftovers == [])
  }
}
