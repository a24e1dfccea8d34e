import CAllocations
import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// The connection of a WebSocket task over a scripted kernel.
@Suite(.ownThread) struct WebSocketConnectionTests {
  let world: ScriptedWorld
  let gate = LiveGate()
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  /// Starts a conversation.
  private func open(_ change: (inout WebSocketSettings) -> Void = { _ in }) throws -> WebSocketConnection {
    let settings = WebSocketTaskSettings()
    settings.read { change(&$0.machine) }
    let connection = WebSocketConnection(over: try world.openTunnel(), WebSocketAgreement(), settings) {}
    connection.start()
    gate.open(for: connection)
    return connection
  }

  /// Runs ticks, also those for what completes behind the last one.
  private func settle() {
    world.settle()
    world.settle()
  }

  private func start(_ kind: WebSocketOperation.Kind) -> Running<WebSocketOperation> {
    let gate = gate
    let running = world.run {
      let operation = WebSocketOperation(kind, through: gate)
      try await operation.run()
      return operation
    }
    settle()
    return running
  }

  private func text(_ running: Running<WebSocketOperation>) -> String? {
    if case .string(let text)? = running.value?.received { text } else { nil }
  }

  private static let (first, second): ([UInt8], [UInt8]) = ([0x81, 1, 0x61], [0x81, 1, 0x62])

  /// A call whose bytes cannot leave fails, and so does a later one, although the end has not been received yet.
  @Test func sendingFails() throws {
    let connection = try open()
    peer.willFailToSend(.brokenPipe)
    let (broken, later) = (start(.send(.string("a"))), start(.send(.string("b"))))
    #expect(broken.error is URLError && later.error is URLError)
    peer.close()
    settle()
    guard case .failed(.endedWithoutClose, .some)? = connection.end else {
      Issue.record("the conversation continues")
      return
    }
    #expect(world.leftovers == [])
  }

  /// Once bytes cannot leave, pings fail as well, and the end is found although a message waits for its `receive`.
  @Test func aBrokenConnectionBehindAMessage() throws {
    let connection = try open()
    peer.send(Self.first)
    settle()
    let waiting = start(.ping)
    peer.willFailToSend(.brokenPipe)
    #expect(start(.send(.string("a"))).error is URLError)
    #expect(waiting.error is URLError && start(.ping).error is URLError)
    peer.close()
    settle()
    #expect(connection.end == nil)
    _ = start(.close(1000, reason: []))
    guard case .failed(.endedWithoutClose, .some)? = connection.end else {
      Issue.record("the conversation continues")
      return
    }
    #expect(text(start(.receive)) == "a")
    #expect(world.leftovers == [])
  }

  /// The server's Close is read although messages have not been received: the conversation does not wait for its time
  /// limit.
  @Test func aCloseAfterMessagesThatAreNotReceived() throws {
    let connection = try open()
    peer.send(Self.first, Self.second)
    settle()
    #expect(start(.close(1000, reason: [])).isOver)
    peer.send([0x82, 0, 0x88, 2, 3, 0xe8])
    settle()
    guard case .closed(let close, startedBy: .local)? = connection.end else {
      Issue.record("the conversation continues")
      return
    }
    #expect(close.code == 1000)
    peer.close()
    settle()
    // What came before the server's Close can still be received.
    #expect(text(start(.receive)) == "a")
    #expect(text(start(.receive)) == "b")
    #expect(start(.receive).value?.message?.bytes == [])
    #expect(start(.receive).error != nil)
    #expect(world.leftovers == [])
  }

  /// Behind this side's Close, unreceived messages take no more memory than a message may have: then the
  /// server is held up, and nothing is lost.
  @Test func messagesBehindThisSidesClose() throws {
    let connection = try open { $0.messageBytesMax = 1000 }
    #expect(start(.close(1000, reason: [])).isOver)
    for _ in 0..<40 { peer.send([0x82, 100] + [UInt8](repeating: 7, count: 100)) }
    peer.send([0x88, 2, 3, 0xe8])
    settle()
    // The first one, and those behind it.
    #expect(peer.unfetched > 25 * 102)
    #expect(connection.end == nil)
    for _ in 0..<40 { #expect(start(.receive).value?.message?.bytes.count == 100) }
    guard case .closed? = connection.end else {
      Issue.record("the conversation continues")
      return
    }
    peer.close()
    settle()
    #expect(world.leftovers == [])
  }

  /// A Close that the server never answers: the conversation fails when the time is up, and the connection is closed.
  @Test func aCloseThatIsNeverAnswered() throws {
    let connection = try open { $0.closeTimeout = .seconds(10) }
    let waiting = start(.receive)
    #expect(start(.close(1000, reason: [])).isOver)
    world.advance(by: .milliseconds(9_999))
    settle()
    #expect(connection.end == nil && peer.isOpen && !waiting.isOver)
    world.advance(by: .milliseconds(1))
    settle()
    guard case .failed(.closeTimedOut, nil)? = connection.end else {
      Issue.record("the end is \(String(describing: connection.end))")
      return
    }
    #expect((waiting.error as? URLError)?.code == .timedOut)
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  /// A server that answers the Close and keeps the connection: the conversation has ended, and the connection is closed
  /// when the time is up.
  @Test func aConnectionThatTheServerKeeps() throws {
    let connection = try open { $0.closeTimeout = .seconds(10) }
    #expect(start(.close(1000, reason: [])).isOver)
    peer.send([0x88, 2, 3, 0xe8])
    settle()
    guard case .closed? = connection.end else {
      Issue.record("the end is \(String(describing: connection.end))")
      return
    }
    world.advance(by: .milliseconds(9_999))
    settle()
    #expect(peer.isOpen)
    world.advance(by: .milliseconds(1))
    settle()
    #expect(!peer.isOpen)
    #expect(world.leftovers == [])
  }

  /// An interruption behind the end changes neither the end nor the error of the calls that come too late.
  @Test func anInterruptionBehindTheEnd() throws {
    let connection = try open()
    let waiting = start(.receive)
    peer.send([0xc1, 0])
    settle()
    world.loop.post { connection.interrupt(URLError(.cancelled)) }
    settle()
    for call in [waiting, start(.receive), start(.send(.string("a"))), start(.ping)] {
      let error = call.error as? NSError
      #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(POSIXErrorCode.EPROTO.rawValue))
    }
    guard case .failed(.frameInvalid(.compressionUnexpected(.text)), nil)? = connection.end else {
      Issue.record("the end is \(String(describing: connection.end))")
      return
    }
    #expect(world.leftovers == [])
  }

  /// Frames on their way through the connection cost no allocation, apart from the growth of their message.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"))
  func framesWithoutAllocations() throws {
    let connection = try open()
    peer.send([0x02, 0])
    settle()
    let none = [UInt8](repeating: 0, count: 2000)
    let pongs = (0..<1000).flatMap { _ in [0x8a, 3, 1, 2, 3] as [UInt8] }
    let bytes = (0..<1000).flatMap { _ in [0x00, 2, 1, 2] as [UInt8] }
    let counts = world.run {
      [none, pongs, bytes].map { frames in
        _ = connection.received(frames.span)
        let before = larkspur_allocations()
        _ = connection.received(frames.span)
        return Int(larkspur_allocations() - before)
      }
    }
    // The message grows from 2,000 to 4,000 bytes.
    #expect(counts.value?.prefix(2) == [0, 0])
    #expect(counts.value.map { $0[2] <= 2 } == true)
    peer.send([0x80, 0])
    peer.close()
    settle()
    #expect(start(.receive).value?.message?.bytes.count == 4000)
    #expect(world.leftovers == [])
  }

  /// While a message waits for its `receive`, pongs are not read, and do not count as missing.
  @Test func aPauseIsNoSilence() throws {
    let connection = try open { ($0.pingInterval, $0.pongTimeout) = (.seconds(10), .seconds(15)) }
    peer.send(Self.first)
    settle()
    for _ in 0..<20 { world.advance(by: .seconds(7)) }
    settle()
    // Pings are sent meanwhile: a middle-box does not forget the connection.
    #expect(peer.received.count > 10)
    #expect(text(start(.receive)) == "a")
    world.advance(by: .seconds(7))
    peer.send(Self.second)
    settle()
    #expect(text(start(.receive)) == "b")
    // Now the silence counts.
    for _ in 0..<3 { world.advance(by: .seconds(7)) }
    settle()
    guard case .failed(.pongTimedOut, nil)? = connection.end else {
      Issue.record("the conversation continues")
      return
    }
    #expect(world.leftovers == [])
  }
}
