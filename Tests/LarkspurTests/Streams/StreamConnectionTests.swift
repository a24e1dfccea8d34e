import Foundation
import LarkspurEngine
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// The connection of a stream task over a scripted kernel: the order of operations, their time, and handing over.
@Suite(.ownThread) struct StreamConnectionTests {
  let world: ScriptedWorld
  let gate = LiveGate()
  let connection: StreamConnection
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
    connection = StreamConnection(on: world.loop, whenEventful: {}) { _ in }
    connection.use(try world.openTunnel())
    gate.open(for: connection)
  }

  /// Starts an operation.
  private func start(_ kind: StreamOperation.Kind, timeout: TimeInterval = 0) -> Running<StreamOperation> {
    let gate = gate
    let running = world.run {
      let operation = StreamOperation(kind, timeout: timeout, through: gate)
      try await operation.run()
      return operation
    }
    settle()
    return running
  }

  /// Runs ticks, also those for what completes behind the last one.
  private func settle() {
    world.settle()
    world.settle()
  }

  private func read(_ count: Int, timeout: TimeInterval = 0) -> Running<StreamOperation> {
    start(.read(min: count, max: count), timeout: timeout)
  }

  private func code(_ error: (any Error)?) -> URLError.Code? { (error as? URLError)?.code }

  /// Does what the owner does between two connections.
  private func handOver(_ check: (Tunnel) -> Void = { _ in }) throws {
    let tunnel = try #require(connection.takeTunnel())
    check(tunnel)
    connection.endHolding()
    connection.use(tunnel)
    settle()
  }

  private func close() {
    connection.end(nil)
    settle()
    #expect(world.leftovers == [])
  }

  /// Bytes that a read got before its time was up do not stay behind in plain text when the connection is handed over.
  @Test(arguments: [StreamOperation.Kind.captureStreams, .startSecureConnection])
  func bytesThatWereReadAreHandedOver(_ kind: StreamOperation.Kind) throws {
    let reading = read(10, timeout: 1)
    peer.send([1, 2, 3])
    settle()
    world.advance(by: .seconds(2))
    settle()
    #expect(code(reading.error) == .timedOut)
    peer.send([4, 5])
    _ = start(kind)
    try handOver { #expect($0.received.starts(with: [1, 2, 3])) }
    // What is read next is what the new owner makes of all the bytes.
    let next = read(5)
    #expect(next.value?.data == Data([1, 2, 3, 4, 5]))
    close()
  }

  /// The time of an operation counts while another one holds it back, and an operation whose time is up has no effect.
  @Test func operationsAreHeldBackForTheirTimeOnly() throws {
    _ = start(.startSecureConnection)
    let writing = start(.write(Data([7])), timeout: 1)
    let reading = read(1, timeout: 3)
    world.advance(by: .seconds(2))
    settle()
    #expect(code(writing.error) == .timedOut)
    #expect(!reading.isOver)
    try handOver()
    #expect(peer.received == [])
    // The time before counts.
    world.advance(by: .milliseconds(1100))
    settle()
    #expect(code(reading.error) == .timedOut)
    close()
  }

  @Test func aCancelledReadTakesNoBytes() throws {
    _ = start(.startSecureConnection)
    let cancelled = read(2)
    cancelled.cancel()
    settle()
    #expect(cancelled.error is CancellationError)
    let next = read(2)
    try handOver()
    peer.send([1, 2])
    settle()
    #expect(next.value?.data == Data([1, 2]))
    close()
  }

  /// A write whose time is up before its first byte is dropped; one that has begun is sent whole.
  @Test func aWriteThatHasBegunIsSentWhole() {
    peer.setSendRoom(1)
    let first = start(.write(Data([1, 2, 3])), timeout: 1)
    let second = start(.write(Data([4])), timeout: 1)
    world.advance(by: .seconds(2))
    settle()
    #expect(code(first.error) == .timedOut && code(second.error) == .timedOut)
    peer.setSendRoom(.max)
    settle()
    #expect(peer.received == [1, 2, 3])
    close()
  }

  /// The kernel takes bytes again in the tick in which the time of a write is up: its rest is sent once.
  @Test func aWriteTimesOutAsTheKernelTakesBytes() {
    peer.setSendRoom(1)
    let first = start(.write(Data([1, 2, 3])), timeout: 1)
    let second = start(.write(Data([4])))
    peer.setSendRoom(.max)
    world.advance(by: .seconds(2))
    settle()
    #expect(code(first.error) == .timedOut && second.value != nil)
    #expect(peer.received == [1, 2, 3, 4])
    close()
  }

  /// A loss that a write has met is the error of the reads as well, behind the bytes that came before.
  @Test func aLossThatAWriteHasMet() throws {
    peer.send([1, 2, 3, 4, 5])
    peer.close()
    settle()
    peer.willFailToSend(.connectionReset, .brokenPipe)
    #expect(code(start(.write(Data([6]))).error) == .networkConnectionLost)
    let first = start(.read(min: 1, max: 100))
    #expect(first.value?.data == Data([1, 2, 3, 4, 5]) && first.value?.isAtEnd == false)
    let second = start(.read(min: 1, max: 100))
    #expect(code(second.error) == .networkConnectionLost)
    guard case .end(let error?)? = connection.takeEvent() else {
      Issue.record("the connection has no error")
      return
    }
    #expect((error.transportError) == .connectionLost(.receivingBody, .connectionReset))
    #expect(world.leftovers == [])
  }

  /// The loss is the task's error, also if the program reads no more. A broken pipe behind an orderly end is not.
  @Test(arguments: [Errno.connectionReset, .brokenPipe])
  func aLossWithoutARead(error: Errno) throws {
    peer.close()
    settle()
    peer.willFailToSend(error)
    #expect(code(start(.write(Data([6]))).error) == .networkConnectionLost)
    _ = start(.closeRead)
    guard case .end(let end)? = connection.takeEvent() else {
      Issue.record("the connection has not ended")
      return
    }
    #expect(code(end) == (error == .brokenPipe ? nil : .networkConnectionLost))
    #expect(world.leftovers == [])
  }

  /// A write behind `closeWrite` fails, also if bytes are received meanwhile.
  @Test func aWriteBehindTheClose() {
    let reading = read(1)
    let gate = gate
    let calls: [StreamOperation.Kind] = [.write(Data([1])), .closeWrite, .write(Data([2]))]
    peer.send([9])
    let running = calls.map { kind in
      world.start {
        let operation = StreamOperation(kind, through: gate)
        try await operation.run()
        return operation
      }
    }
    settle()
    #expect(reading.value?.data == Data([9]))
    #expect(running[0].value != nil && running[1].value != nil && running[2].error != nil)
    #expect(peer.received == [1])
    close()
  }
}
