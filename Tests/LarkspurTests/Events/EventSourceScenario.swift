import Foundation
import Larkspur
import LarkspurIO
import LarkspurTestSupport
import TestKit

@testable import Larkspur

/// An event source over a scripted kernel, with its session. One seed is one world: the responses and streams of the
/// server, how bytes are cut and held up, the pace of the readers, and the moments at which they are cancelled, leave,
/// are replaced, or the source is closed.
///
/// Rules, whatever happens: every reader ends, with the right outcome; each event comes once, in order, as it was sent,
/// without a gap; `Last-Event-ID` is the ID of the latest event, or of a block of lines behind it; no reconnection is
/// earlier than the server or the failures allow, or much later; nothing is delivered to a reader that has been
/// cancelled or replaced, or behind the source's end, and nothing is requested behind it; a slow reader slows the
/// server down; nothing is left over.
///
/// The program's closures run on other threads. The world waits until each reader stands still, so the threads' order
/// changes nothing.
final class EventSourceScenario {
  /// The number of bytes that a client may hold for a reader that does not read: two pieces of at most 128 KiB, the
  /// connection's buffer of 64 KiB, and 64 KiB for the rest.
  static let heldBytesMax = 384 * 1024

  private let world: ScriptedWorld
  private let session: URLSession
  private let source: URLSessionEventSource
  private let server: ScriptedEventServer
  private let waits = HeldCalls()
  private let preparations = HeldCalls()
  private let deliveries = Shared<[(reader: Int, event: ServerSentEvent)]>([])
  private let readers = Shared<[EventSourceReader]>([])
  private var random: SeededGenerator
  private(set) var complaints: [String] = []

  // The state that the source has to have.
  private var id: String
  /// The reconnection time, and the longest one that it may be if a reader has gone at an unknown moment.
  private var (retry, retryMax): (Duration, Duration)
  /// The shortest time that the server can set.
  private let retryMin: Duration
  private var hasReceived = false
  /// The number of connections without an event, or `nil` if a reader has gone at an unknown moment.
  private var failureCount: Int? = 0
  private var lastNumber: Int?
  private var isClosed = false

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    world = try ScriptedWorld()
    let settings = URLSessionConfiguration.ephemeral
    (settings.httpCookieStorage, settings.urlCache, settings.urlCredentialStorage) = (nil, nil, nil)
    settings.connectionProxyDictionary = [:]
    settings.storage.loop = world.loop
    session = URLSession(configuration: settings)
    let isLimited = random.chance(20)
    server = ScriptedEventServer(world.kernel, isLimited: isLimited)
    var configuration = URLSessionEventSource.Configuration()
    if isLimited {
      (configuration.lineBytesMax, configuration.eventBytesMax) =
        (DrawnEventStream.bytesMax, DrawnEventStream.bytesMax)
    }
    if random.chance(30) { configuration.idleTimeout = .seconds(45) }
    if random.chance(20) { configuration.lastEventID = "5" }
    configuration.reconnectionTime = random.pick([.seconds(3), .zero, .seconds(1), .seconds(100)])
    let fraction = random.pick([0, 0.5, 1, .random(in: 0...1, using: &random)])
    configuration.random = { fraction }
    configuration.wait = { [waits] delay in try await waits.hold(delay) }
    if random.chance(30) { configuration.prepare = { [preparations] _ in try await preparations.hold(.zero) } }
    id = configuration.lastEventID ?? ""
    lastNumber = Int(id)
    retry = max(configuration.reconnectionTime, .milliseconds(100))
    (retryMin, retryMax) = (min(retry, .milliseconds(500)), retry)
    guard let url = URL(string: "http://127.0.0.1/events") else { throw URLError(.badURL) }
    source = URLSessionEventSource(url: url, session: session, configuration: configuration)
    self.random = random
  }

  private var latest: EventSourceReader? { readers.value.last { $0.hasBegun } }

  // MARK: - The run

  /// Runs the world to its end.
  func run() {
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      step()
      if random.chance(60) { settle() } else { world.tick(Int.random(in: 0...3, using: &random)) }
      if !complaints.isEmpty { break }
    }
    finish()
    check()
  }

  private func step() {
    if !readers.value.contains(where: { !$0.isOver && !$0.isStopped }), random.chance(60) { start() }
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<40: act()
    case 40..<52: waits.release()
    case 52..<60: preparations.release()
    case 60..<70: for reader in readers.value { reader.resume() }
    case 70..<75: for reader in readers.value { reader.isSlow.toggle() }
    case 75..<82: server.endStream(using: &random)
    case 82..<87:
      settle()
      world.kernel.advance(by: .seconds(Int.random(in: 0...70, using: &random)))
      settle()
    case 87..<90:
      if latest?.isPaused == true { server.flood(700_000, using: &random) }
    case 90..<93: (random.chance(80) ? latest : readers.value.randomElement(using: &random))?.cancel()
    case 93: start()
    case 94:
      for reader in readers.value { reader.stop { $0.isClosed = true } }
      source.close()
    default: world.kernel.willConnect(random.chance(50) ? .fails(.connectionRefused) : .later(.connectionReset))
    }
  }

  /// Lets the server respond, or send more.
  private func act(isLast: Bool = false) {
    if server.pending != nil {
      server.respond(isLast: isLast, using: &random)
    } else {
      server.proceed(using: &random)
    }
    if let (verdict, reader) = server.verdict { readers.value[reader].verdict = verdict }
  }

  private func start() {
    if !readers.value.isEmpty { failureCount = nil }
    let leavesAfter = random.chance(20) ? Int.random(in: 1...5, using: &random) : .max
    let reader = EventSourceReader(readers.value.count, leavesAfter: leavesAfter, isSlow: random.chance(50))
    readers.value.append(reader)
    reader.running = world.start { [source, readers, deliveries] in
      // From here on, the readers before this one get nothing more.
      reader.start(isClosed: source.readyState == .closed)
      for other in readers.value[..<reader.number] { other.stop { $0.isReplaced = true } }
      var iterator = source.events.makeAsyncIterator()
      while reader.count < reader.leavesAfter, let event = try await iterator.next(isolation: nil) {
        reader.count += 1
        deliveries.value.append((reader.number, event))
        await reader.pause()
      }
    }
  }

  /// Lets the last reader catch up, and ends the source.
  private func finish() {
    for _ in 0..<300 {
      settle()
      if !complaints.isEmpty || readers.value.allSatisfy(\.isOver) && source.readyState == .closed { break }
      if readers.value.allSatisfy({ $0.isOver || $0.isStopped }) { start() }
      for reader in readers.value {
        reader.isSlow = false
        reader.resume()
      }
      waits.release()
      preparations.release()
      if server.pending == nil { server.endStream(using: &random) } else { act(isLast: true) }
    }
    session.invalidateAndCancel()
    world.settle()
    // A task that was cancelled before its first `resume` has a timer. What another thread has held may be released a
    // moment later.
    Wait.blocking(until: "nothing is left") {
      world.advance(by: .seconds(1))
      return world.leftovers.isEmpty
    }
  }

  // MARK: - Coming to rest

  /// Runs ticks until each reader is over, is paused, waits for the server, or is held in a closure of the program.
  private func settle() {
    // A closure of the program may be on its way to another thread or back.
    Wait.blocking(until: "all readers are at rest") {
      guard world.settle() else {
        complaints.append("the loop does not come to rest")
        return true
      }
      takeDeliveries()
      for delay in waits.takeNew() { check(delay) }
      takeRequests()
      return readers.value.allSatisfy(isAtRest)
    }
    for reader in readers.value where !isAtRest(reader) { complaints.append("reader \(reader.number) hangs") }
    if source.readyState == .closed { isClosed = true }
    checkMemory()
  }

  private func isAtRest(_ reader: EventSourceReader) -> Bool {
    if reader.isOver || reader.isPaused { return true }
    return !reader.isStopped && (waits.isHolding || preparations.isHolding || server.isAwaited)
  }

  // MARK: - The rules

  private func takeDeliveries() {
    for (reader, event) in deliveries.value {
      guard let stream = server.stream, stream.reader == reader else {
        complaints.append("reader \(reader) gets an event that is not of its connection")
        continue
      }
      let rest = stream.effects[stream.seen...]
      let isEvent = { (effect: DrawnEventStream.Effect) in if case .event = effect { true } else { false } }
      guard let index = rest.firstIndex(where: { isEvent($0.effect) }), rest[index].end <= stream.sentBytes,
        case .event(event, let number) = rest[index].effect
      else {
        complaints.append("\(event) is not the next event of \(rest.prefix(3))")
        continue
      }
      apply(rest[...index])
      stream.seen = index + 1
      if reader == latest?.number { (hasReceived, failureCount) = (true, 0) }
      if let number { checkOrder(number) }
    }
    deliveries.value = []
  }

  private func checkOrder(_ number: Int) {
    defer { lastNumber = number }
    guard let last = lastNumber else { return }
    if number <= last { return complaints.append("event \(number) behind \(last)") }
    guard !server.hasForgotten else { return }
    for missing in last + 1..<number where server.log[missing] != true {
      complaints.append("event \(missing) is missing")
    }
  }

  private func apply(_ effects: ArraySlice<(end: Int, effect: DrawnEventStream.Effect)>) {
    for (_, effect) in effects {
      switch effect {
      case .event(let event, _): id = event.id ?? ""
      case .lastEventID(let value): id = value
      case .reconnectionTime(let milliseconds):
        retry = max(min(.milliseconds(milliseconds), .seconds(3600)), retryMin)
        retryMax = retry
      case .tooLarge: break
      }
    }
  }

  /// Takes in the rest of a stream that the client has read to its end.
  private func finish(_ stream: ScriptedEventServer.Stream) {
    guard !stream.isRead else { return }
    stream.isRead = true
    let rest = stream.effects[stream.seen...].prefix { $0.end <= stream.sentBytes }
    for case (_, .event(let event, _)) in rest { complaints.append("\(event) is lost") }
    apply(rest)
  }

  private func takeRequests() {
    let stream = server.stream
    guard let latest else { return }
    let requests = server.takeRequests(of: latest.number)
    guard !requests.isEmpty else { return }
    let id = id
    if let stream, !stream.isRead {
      if stream.reader == latest.number {
        finish(stream)
      } else if stream.hasEnded {
        // The reader before may have come to the end of the stream before it was stopped.
        let (before, beforeMax) = (retry, retryMax)
        if id != requests[0].lastEventID ?? "" {
          finish(stream)
        } else {
          apply(stream.effects[stream.seen...].prefix { $0.end <= stream.sentBytes })
          (self.id, retry, retryMax) = (id, min(before, retry), max(beforeMax, retryMax))
        }
      }
    }
    for request in requests where request.lastEventID != (self.id.isEmpty ? nil : self.id) {
      complaints.append("the request has \(request.lastEventID ?? "no ID"), and not \(self.id)")
    }
    if isClosed { complaints.append("a request behind the end") }
    latest.verdict = nil
    hasReceived = false
  }

  /// Checks the delay before a new connection.
  private func check(_ delay: Duration) {
    guard let latest, !latest.isStopped else { return }
    if let stream = server.stream, stream.reader == latest.number { finish(stream) }
    let asked = server.takeRetryAfter(of: latest.number)
    if delay < max(retry, asked) { complaints.append("the delay \(delay) is shorter than \(retry) or \(asked)") }
    guard let count = failureCount else { return }
    func grown(_ time: Duration) -> Duration {
      min(time * (1 << min(count, 20)), max(.seconds(60), time))
    }
    if delay < grown(retry) / 2 { complaints.append("the delay \(delay) behind \(count) failures does not grow") }
    if delay > max(grown(retryMax), retryMax, asked) * 1.5 + .milliseconds(1) {
      complaints.append("the delay \(delay) behind \(count) failures is too long")
    }
    if !hasReceived { failureCount = count + 1 }
    hasReceived = false
  }

  private func checkMemory() {
    guard let latest, latest.isPaused, let stream = server.stream, stream.reader == latest.number, stream.isOpen
    else { return }
    let held = stream.receivedBytes - stream.seenBytes
    if held > Self.heldBytesMax { complaints.append("\(held) bytes are held for a slow reader") }
  }

  private func check() {
    for reader in readers.value {
      if !reader.isOver {
        complaints.append("reader \(reader.number) is not over")
      } else if !reader.hasRightEnd {
        complaints.append("reader \(reader.number) ends with \(String(describing: reader.running?.result))")
      }
      if let countMax = reader.countMax, reader.count > countMax {
        complaints.append("reader \(reader.number) gets events behind its end")
      }
    }
    if source.readyState != .closed { complaints.append("the source has not ended") }
    complaints += world.leftovers
  }
}
