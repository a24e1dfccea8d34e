import LarkspurBytes
import LarkspurIO
import Synchronization
import Testing

@testable import LarkspurTransport

/// Work that is a closure.
final class GuestWork: LoopWork {
  private let body: @Sendable () -> Void
  init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  func perform() { body() }
}

/// A successor that is a closure.
final class Successor: TurnSuccessor, Sendable {
  let callersPriority: TaskPriority.RawValue?
  private let call: @Sendable () -> Void

  init(callersPriority: TaskPriority.RawValue? = nil, _ call: @escaping @Sendable () -> Void) {
    self.callersPriority = callersPriority
    self.call = call
  }

  func turnIsOver() { call() }
}

/// What a guest of a loop waits for. It belongs to whoever has the loop, but for the flag.
final class AwaitedAnswer: TurnSuccessor, AwaitedByGuest, @unchecked Sendable {
  var waiter: Waiter?
  private let isHere = Atomic(false)
  var hasCome: Bool { isHere.load(ordering: .sequentiallyConsistent) }
  var callersPriority: TaskPriority.RawValue? { nil }

  func turnIsOver() {
    isHere.store(true, ordering: .sequentiallyConsistent)
    waiter.take()?.wake()
  }
}

/// A socket on a loop, and a thread at its far end that sends back what it gets.
final class EchoLine: @unchecked Sendable {
  private let loop: ClientLoop
  /// Belongs to whoever has the loop.
  private let channel: Channel
  private let farEnd: BlockingSocket
  private let echo: SystemThread

  init(on loop: ClientLoop) async throws {
    self.loop = loop
    let listener = try BlockingListener(address: .loopback(port: 0))
    let box = try await loop.run {
      let channel = try Channel(to: .loopback(port: listener.port), on: loop)
      if try !channel.connect() { try await channel.wait(reading: false, writing: true) }
      try channel.finishConnecting()
      return Box(channel: channel)
    }
    channel = box.channel
    let farEnd = try listener.accept()
    self.farEnd = farEnd
    echo = try SystemThread(name: "echo") {
      while let bytes = try? farEnd.receive(atMost: 100), !bytes.isEmpty { try? farEnd.send(bytes) }
    }
  }

  private struct Box: @unchecked Sendable {
    var channel: Channel
  }

  /// Sends a byte, and waits for its echo: as a guest, or without looking for it.
  func exchange(asGuest: Bool = true) async {
    let answer = AwaitedAnswer()
    await Waiter.suspend { waiter in
      answer.waiter = waiter
      let work = GuestWork { [self] in
        var queue = ByteQueue()
        queue.append([1])
        #expect((try? channel.send(&queue)) == true)
        receive(answer)
      }
      loop.perform(work, asGuest: true, for: asGuest ? answer : nil)
    }
    #expect(answer.hasCome)
  }

  /// What comes next without being asked for. The loop waits for it when this returns.
  func unasked() async -> AwaitedAnswer {
    let answer = AwaitedAnswer()
    await withCheckedContinuation { continuation in
      loop.post { [self] in
        receive(answer)
        continuation.resume()
      }
    }
    return answer
  }

  func sendFromTheFarEnd() throws { try farEnd.send([1]) }

  /// In a turn of the loop.
  private func receive(_ answer: AwaitedAnswer) {
    var chunk = loop.takeChunk(atLeast: 16)
    let again = GuestWork { [self] in receive(answer) }
    do {
      while try !channel.wait(writing: false, with: again) {
        guard case .bytes = try channel.receive(into: &chunk) else { continue }
        return loop.callAfterTurn(answer)
      }
    } catch {
      Issue.record(error)
    }
  }

  /// The channel is closed when the loop stops.
  func hangUp() {
    farEnd.shutDown()
    echo.join()
  }
}
