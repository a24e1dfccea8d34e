import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The wait of a task by a call that subscribes a callback.
@Suite struct TaskCallbackTests {
  let world: ScriptedWorld

  init() throws { world = try ScriptedWorld() }

  /// Awaits the third answer of a call that subscribes its callback by `subscribe`, and returns the number of callbacks.
  private func third(_ subscribe: @escaping @Sendable (any LoopCallback) -> Void) -> Running<Int> {
    world.run {
      var (calls, callbacks) = (0, 0)
      return try await TaskCallback.awaiting { (callback) throws(TransportError) -> Int? in
        calls += 1
        guard let callback else { return nil }
        callbacks += 1
        guard calls < 3 else { return callbacks }
        subscribe(callback)
        return nil
      }
    }
  }

  @Test func whatIsThereNeedsNoCallback() {
    let running = world.run {
      try await TaskCallback.awaiting { (callback) throws(TransportError) in callback == nil ? 1 : 2 }
    }
    #expect(running.value == 1)
  }

  @Test func aCallbackThatRunsLater() {
    let running = third { [world] in world.loop.submit($0, inline: false) }
    #expect(running.value == 2)
  }

  @Test func aCallbackThatRunsBeforeTheTaskSuspends() {
    let running = third { $0.perform() }
    #expect(running.value == 2)
  }

  @Test func anErrorEndsTheWait() {
    let running = world.run {
      try await TaskCallback.awaiting { (callback) throws(TransportError) -> Int? in
        guard let callback else { return nil }
        callback.perform()
        throw .connectionClosed
      }
    }
    #expect(running.transportError == .connectionClosed)
  }
}
