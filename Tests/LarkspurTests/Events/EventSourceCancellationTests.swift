import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// An event source ends at any moment: while it prepares, connects, reads or waits.
@Suite(.timeLimit(.minutes(2))) struct EventSourceCancellationTests {
  typealias Script = EventSourceScript

  enum Moment: CaseIterable { case preparing, connecting, reading, waiting }

  /// A source whose reader waits for good, and the signal that it has come so far.
  private func held(at moment: Moment) throws -> (Script, URLSessionEventSource, TestServer.Signal) {
    let (reached, never) = (TestServer.Signal(), TestServer.Signal())
    let script =
      switch moment {
      case .preparing: try Script()
      case .connecting: try Script([.expectRequest, .fire(reached), .expectClose])
      case .reading: try Script([.expectRequest, .send(Script.head + ": x\n"), .fire(reached), .expectClose])
      case .waiting: try Script(Script.status(503))
      }
    let source = try script.source { configuration in
      if moment == .preparing {
        configuration.prepare = { _ in
          reached.fire()
          try await never.wait()
        }
      }
      configuration.wait = { _ in
        reached.fire()
        try await never.wait()
      }
    }
    return (script, source, reached)
  }

  /// The connection that the reader had at that moment is closed, as the script expects.
  private func expectClosedConnection(of script: Script, at moment: Moment) async throws {
    if moment != .preparing { try await script.server.waitForClosedConnections(1) }
    #expect(script.server.failures == [])
  }

  @Test(arguments: Moment.allCases) func theReaderIsCancelled(moment: Moment) async throws {
    let (script, source, reached) = try held(at: moment)
    let reader = Task { try await Script.data(of: source) }
    try await reached.wait()
    reader.cancel()
    let result = await reader.result
    let error = #expect(throws: URLError.self) { try result.get() }
    #expect(error?.code == .cancelled)
    // The source has not ended: another reader may connect.
    #expect(source.readyState == .connecting)
    try await expectClosedConnection(of: script, at: moment)
  }

  @Test(arguments: Moment.allCases) func theSourceIsClosed(moment: Moment) async throws {
    let (script, source, reached) = try held(at: moment)
    let reader = Task { try await Script.data(of: source) }
    try await reached.wait()
    source.close()
    #expect(source.readyState == .closed)
    #expect(try await reader.value == [])
    #expect(try await Script.data(of: source) == [])
    try await expectClosedConnection(of: script, at: moment)
  }

  @Test(arguments: Moment.allCases) func anotherReaderTakesOver(moment: Moment) async throws {
    let (script, source, reached) = try held(at: moment)
    let first = Task { try await Script.data(of: source) }
    try await reached.wait()
    // The second reader is held at the next moment of its kind, or gets the ordinary routes' 404.
    let second = Task { try await Script.data(of: source) }
    #expect(try await first.value == [])
    second.cancel()
    _ = await second.result
    try await expectClosedConnection(of: script, at: moment)
  }

  @Test func aSourceThatIsClosedBeforeItIsRead() async throws {
    let script = try Script()
    let source = try script.source()
    source.close()
    #expect(try await Script.data(of: source) == [])
    #expect(script.server.connectionsAccepted == 0)
  }

  @Test func aReaderThatIsCancelledBeforeItReads() async throws {
    let script = try Script()
    let source = try script.source()
    let start = TestServer.Signal()
    let reader = Task {
      try? await start.wait()
      return try await Script.data(of: source)
    }
    reader.cancel()
    let result = await reader.result
    let error = #expect(throws: URLError.self) { try result.get() }
    #expect(error?.code == .cancelled)
    #expect(source.readyState == .connecting)
  }

  /// Events that have arrived with the one that closed the source are not delivered.
  @Test func theSourceIsClosedBetweenEvents() async throws {
    let script = try Script([.expectRequest, .send(Script.head + "data: 1\n\ndata: 2\n\n"), .expectClose])
    let source = try script.source()
    var data: [String] = []
    for try await event in source.events {
      data.append(event.data)
      source.close()
    }
    #expect(data == ["1"])
    try await script.server.waitForClosedConnections(1)
    #expect(script.server.failures == [])
  }

  /// A reader that is cancelled between two events gets none that has arrived before. The next reader resumes in front
  /// of it.
  @Test func theReaderIsCancelledBetweenEvents() async throws {
    let script = try Script(
      [.expectRequest, .send(Script.head + "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n"), .expectClose],
      [.expectRequest, .send(Script.head + "id: 2\ndata: 2\n\n"), .close], Script.end)
    let source = try script.source()
    let data = Mutex<[String]>([])
    let reader = Task {
      for try await event in source.events {
        data.withLock { $0.append(event.data) }
        withUnsafeCurrentTask { $0?.cancel() }
      }
    }
    let result = await reader.result
    let error = #expect(throws: URLError.self) { try result.get() }
    #expect(error?.code == .cancelled)
    #expect(data.withLock { $0 } == ["1"])
    #expect(source.lastEventID == "1" && source.readyState == .connecting)
    try await script.server.waitForClosedConnections(1)
    #expect(try await Script.data(of: source) == ["2"])
    #expect(script.values("Last-Event-ID") == [nil, "1", "2"])
    #expect(script.server.failures == [])
  }

  /// A loop that is left closes its connection, and the next one resumes behind the events that were read.
  @Test func aLoopThatIsLeft() async throws {
    let script = try Script(
      [.expectRequest, .send(Script.head + "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\n"), .expectClose],
      [.expectRequest, .send(Script.head + "id: 2\ndata: 2\n\n"), .expectClose])
    let source = try script.source()
    for number in 1...2 {
      for try await event in source.events {
        #expect(event == ServerSentEvent(id: "\(number)", data: "\(number)"))
        break
      }
      #expect(source.readyState == .connecting && source.lastEventID == "\(number)")
      try await script.server.waitForClosedConnections(number)
    }
    #expect(script.values("Last-Event-ID") == [nil, "1"])
    #expect(script.delays == [])
    #expect(script.server.failures == [])
  }
}
