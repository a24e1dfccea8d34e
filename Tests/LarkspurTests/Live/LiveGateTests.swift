import LarkspurEngine
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// The way of operations to a connection: before there is one, while there is one, and behind its end.
@Suite(.ownThread) struct LiveGateTests {
  /// A connection that keeps its operations until a test finishes them.
  final class Connection: LiveConnection, @unchecked Sendable {
    let loop: ClientLoop
    var owner: AnyObject? { nil }
    var begun: [LiveOperation] = []
    var forgotten = 0

    init(on loop: ClientLoop) { self.loop = loop }

    func start(_ operation: LiveOperation) { begun.append(operation) }
    func forget(_ operation: LiveOperation) { forgotten += 1 }
  }

  struct Refused: Error {}

  let world: ScriptedWorld
  let gate = LiveGate()
  let connection: Connection

  init() throws {
    world = try ScriptedWorld()
    connection = Connection(on: world.loop)
  }

  /// Runs ticks, also those for what completes behind the last one.
  private func settle() {
    world.settle()
    world.settle()
  }

  private func start() -> Running<Bool> {
    let gate = gate
    return world.run {
      try await LiveOperation(through: gate).run()
      return true
    }
  }

  private func open() {
    let (gate, connection) = (gate, connection)
    world.loop.post { gate.open(for: connection) }
    world.settle()
  }

  private func finishAll(_ error: (any Error)? = nil) {
    let connection = connection
    world.loop.post { for operation in connection.begun { operation.finish(error) } }
    settle()
  }

  @Test func operationsWaitForTheConnection() {
    let (first, second) = (start(), start())
    #expect(!first.isOver && connection.begun.isEmpty)
    open()
    #expect(connection.begun.count == 2)
    let third = start()
    #expect(connection.begun.count == 3)
    finishAll()
    #expect(first.value == true && second.value == true && third.value == true)
  }

  /// A caller on the loop resumes in the tick that brings its result, without a wake-up.
  @Test func aCallerOnTheLoop() {
    open()
    let (gate, loop, connection) = (gate, world.loop, connection)
    let running = world.run {
      try await LiveOperation(through: gate).run()
      return Int(loop.tickNumber)
    }
    let tick = Shared(0)
    loop.post {
      tick.value = Int(loop.tickNumber)
      for operation in connection.begun { operation.finish() }
    }
    settle()
    #expect(running.value == tick.value)
  }

  /// A completion handler is called before what the connection posts to the delegate queue later in the tick.
  @Test func aHandlerIsNotOvertaken() async {
    final class Handled: LiveOperation, @unchecked Sendable {
      let queue: DelegateQueue
      let calls: Shared<[String]>
      init(through gate: LiveGate, on queue: DelegateQueue, _ calls: Shared<[String]>) {
        (self.queue, self.calls) = (queue, calls)
        super.init(through: gate, isHandled: true)
      }
      override func handleResult(for owner: AnyObject?) {
        call({ [calls] in calls.value.append("handler") }, on: queue, for: owner)
      }
    }
    let (queue, calls, connection) = (DelegateQueue(nil), Shared<[String]>([]), connection)
    open()
    Handled(through: gate, on: queue, calls).start()
    world.settle()
    world.loop.post {
      for operation in connection.begun { operation.finish() }
      queue.insist { calls.value.append("delegate") }
    }
    settle()
    await queue.run {}
    #expect(calls.value == ["handler", "delegate"])
  }

  @Test func theGateClosesWithoutAConnection() {
    let waiting = start()
    gate.close(Refused())
    world.settle()
    #expect(waiting.error is Refused)
    let late = start()
    #expect(late.error is Refused)
    // The first error counts.
    gate.close(CancellationError())
    #expect(start().error is Refused)
    open()
    #expect(connection.begun.isEmpty)
  }

  /// Once there is a connection, it answers all operations, also behind its end.
  @Test func aConnectionAnswersAll() {
    open()
    let running = start()
    gate.close(Refused())
    world.settle()
    #expect(!running.isOver)
    finishAll(CancellationError())
    #expect(running.error is CancellationError)
    let late = start()
    #expect(connection.begun.count == 2)
    finishAll(Refused())
    #expect(late.error is Refused)
  }

  @Test func aWaitIsCancelled() {
    let early = start()
    early.cancel()
    settle()
    #expect(early.error is CancellationError)
    open()
    #expect(connection.begun.isEmpty)
    let running = start()
    running.cancel()
    settle()
    #expect(running.error is CancellationError && connection.forgotten == 1)
    // A result that comes later is ignored.
    finishAll()
    #expect(running.error is CancellationError)
  }
}
