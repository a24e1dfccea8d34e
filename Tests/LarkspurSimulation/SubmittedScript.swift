import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// A script run as a session runs a load that waits for a connection and a response only: with callbacks on the loop,
/// submitted by a simulated second thread. While the loop is parked, the callbacks run in inline ticks; a request that
/// has to wait for more continues in a task.
///
/// The simulated second thread is everything that happens while the kernel waits: the loop is then parked and its tick
/// lock is free, as for a real thread.
final class SubmittedScript: LoopCallback, LoopCompletion, @unchecked Sendable {
  private enum Stage {
    case new
    case asking
    case sent
    case reading
  }

  private let script: ClientScript
  private let world: Scenario
  private let pool: Pool
  private let slot: RequestSlot
  private var index = 0
  private var stage = Stage.new
  private var began: UInt64 = 0
  private var deadline = Deadline.never
  private var running: RunningExchange?
  /// The reader that has read the body so far.
  private var reader: Scenario.BodyReader?

  init(_ script: ClientScript, in world: Scenario, over pool: Pool) {
    self.script = script
    self.world = world
    self.pool = pool
    slot = RequestSlot(of: pool)
  }

  private var plan: ClientScript.Plan { script.plans[index] }
  private var endpoint: Endpoint { world.endpoints[plan.endpoint] }
  private var request: PoolRequest { world.request(for: plan, until: deadline) }

  /// Cancels the rest of the script, as from a second thread.
  func cancel() { slot.cancel() }

  func submit() {
    // Inside a tick, this code stands for a second thread that finds the tick lock taken and posts.
    if world.loop.isCurrent {
      world.loop.post { [self] in perform() }
    } else {
      world.loop.submit(self, inline: true)
    }
  }

  func perform() {
    if world.kernel.isWaiting { world.inlineCallbacks += 1 }
    switch stage {
    case .new:
      began = world.began(plan)
      deadline = world.deadline(of: plan)
      stage = .asking
      send()
    case .asking: send()
    case .sent: receive()
    case .reading: read()
    }
  }

  private func send() {
    switch pool.send(request, with: endpoint, in: slot, for: self) {
    case .sent:
      stage = .sent
      receive()
    case .queued: break
    case .needsTask: continueInTask()
    }
  }

  private func receive() {
    do throws(TransportError) {
      guard let running = try slot.answer(for: self) else { return }
      guard case .all = plan.reading else {
        self.running = consume running
        return continueInTask()
      }
      reader = world.reader(ofAnswer: running.exchange.value(of: "x-answer"), for: plan)
      self.running = consume running
      stage = .reading
      read()
    } catch {
      // A request without a response may be sent again, which the pool decides.
      if slot.isInFlight { continueInTask() } else { ended(.failed(error)) }
    }
  }

  /// Reads the body as its pieces arrive.
  private func read() {
    guard let exchange = running?.exchange, var reader = reader.take() else {
      return ended(.failed(.internalInconsistency))
    }
    do throws(TransportError) {
      while exchange.isReceiving {
        guard let hasMore = try exchange.takeData(for: self, { reader.take($0) }) else {
          self.reader = reader
          return
        }
        if !hasMore { break }
      }
      running = nil
      ended(reader.completed())
    } catch {
      running = nil
      ended(.failed(error))
    }
  }

  private func continueInTask() {
    Task(executorPreference: world.loop) { @concurrent [self] in
      do throws(TransportError) {
        let outcome = try await rest()
        ended(outcome)
      } catch {
        ended(.failed(error))
      }
    }
  }

  private func rest() async throws(TransportError) -> Scenario.Outcome {
    if let running = running.take() { return try await world.read(running.exchange, plan) }
    let running = try await pool.start(request, with: endpoint, in: slot)
    return try await world.read(running.exchange, plan)
  }

  private func ended(_ outcome: Scenario.Outcome) {
    world.ended(plan, of: script, began: began, outcome)
    world.loop.completeAfterTick(self)
  }

  /// Submits the next request as soon as the second thread has the response.
  func complete() {
    index += 1
    stage = .new
    if index < script.plans.count { submit() } else { world.scriptIsOver() }
  }
}
