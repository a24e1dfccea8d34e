import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Cancellation at every step of an exchange whose body comes from, or goes to, a file or a producer.
@Suite struct BodyCancellationTests {
  enum Way: CaseIterable { case task, canceller, close, deadline }

  enum Kind: CaseIterable {
    case file, producer, chunkedProducer, heldBytes, download
  }

  /// Records whether a producer ran from its beginning to its end.
  final class Producer: @unchecked Sendable {
    var hasBegun = false
    var hasEnded = false
    var wroteAfterError = false
  }

  static func scenario(_ kind: Kind, _ way: Way, at number: Int) throws -> Int {
    let world = try ScriptedWorld()
    let kernel = world.kernel
    let peer = kernel.peer()
    let file = kernel.makeFile(pattern(20_000))
    peer.setSendBytesMax(3_000)
    peer.willFailToSend(.interrupted, .wouldBlock)
    let canceller = Shared<Canceller?>(nil)
    let open = Shared<Connection?>(nil)
    let producer = Producer()
    let running = world.start {
      let connection = try await Connection.open(to: [address], on: world.loop)
      open.value = connection
      let deadline = world.loop.now.advanced(by: .seconds(10))
      try await connection.cancelledWithTask {
        let exchange = try await connection.send(
          try head(kind), body: body(kind, file, producer), deadline: deadline)
        canceller.value = exchange.canceller
        if kind == .download {
          _ = try await exchange.receiveBody(into: file.openFile)
        } else {
          try await exchange.discardBody()
        }
      }
    }
    kernel.beforeCalls { call in
      guard call == number else { return }
      switch way {
      case .task: running.cancel()
      case .canceller: canceller.value?.cancel()
      case .close, .deadline: break
      }
    }
    for round in 0..<8 {
      #expect(world.settle(), "\(kind) \(way) \(number)")
      if round == 2 { peer.send("HTTP/1.1 100 Continue\r\n\r\n") }
      if round == 4 { peer.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".utf8), pattern(2000)) }
      if round == number % 8, way == .close {
        let closing = world.run { open.value?.close() }
        #expect(closing.isOver)
      }
      if round == number % 8, way == .deadline { world.advance(by: .seconds(20)) }
    }
    peer.send(pattern(3000))
    #expect(world.settle())
    kernel.beforeCalls(nil)
    open.value = nil
    #expect(running.isOver, "\(kind) \(way) \(number)")
    #expect(running.error == nil || running.transportError != nil)
    if let error = running.transportError {
      let isExpected = [.cancelled, .connectionClosed].contains(error) || way == .deadline
      #expect(isExpected, "\(kind) \(way) \(number): \(error)")
    }
    // The producer has ended, and nothing of the exchange is left.
    #expect(!producer.hasBegun || producer.hasEnded, "\(kind) \(way) \(number)")
    #expect(!producer.wroteAfterError)
    #expect(world.leftovers == [], "\(kind) \(way) \(number)")
    #expect(world.loop.chunkBytesLent == 0)
    #expect(kernel.openPipes <= 1)
    return kernel.calls
  }

  static func head(_ kind: Kind) throws -> RequestHead {
    var writer = try RequestWriter(method: kind == .download ? "GET" : "PUT", target: "/", host: "a.example")
    if kind == .heldBytes { try writer.field("Expect", "100-continue") }
    switch kind {
    case .file, .producer, .heldBytes: return writer.finish(body: .length(20_000))
    case .chunkedProducer: return writer.finish(body: .chunked)
    case .download: return writer.finish()
    }
  }

  static func body(_ kind: Kind, _ file: ScriptedFile, _ producer: Producer) -> RequestBody {
    switch kind {
    case .file: .file(file.openFile, offset: 0, length: 20_000)
    case .heldBytes: .bytes(pattern(20_000))
    case .download: .none
    case .producer, .chunkedProducer:
      .produced(length: kind == .producer ? 20_000 : nil) { writer in
        producer.hasBegun = true
        defer { producer.hasEnded = true }
        for _ in 0..<20 {
          do {
            try await writer.write(pattern(1000))
          } catch {
            producer.wroteAfterError = (try? await writer.write([1])) != nil
            throw error
          }
          await Task.yield()
        }
      }
    }
  }

  @Test(arguments: Kind.allCases, Way.allCases) func atEveryStep(kind: Kind, way: Way) throws {
    var number = 1
    let steps = way == .close || way == .deadline ? 8 : 10_000
    while number <= min(try Self.scenario(kind, way, at: number), steps) { number += 1 }
    #expect(number > 8)
  }
}
