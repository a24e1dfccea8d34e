import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// The corpus of broken and cut connections, over real sockets.
@Suite struct FaultCorpusTests {
  struct Scenario: Decodable, Sendable, CustomTestStringConvertible {
    struct Step: Decodable, Sendable {
      var op: String
      var latin1: String?
      var segment: Int?
    }

    var id: String
    var steps: [Step]
    var expect: String

    var testDescription: String { id }

    /// All bytes that the server sends.
    var sent: [UInt8] { steps.flatMap { ($0.latin1 ?? "").unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } } }

    /// The body's bytes without their coding. All bodies of the corpus repeat one letter.
    var body: [UInt8] {
      let text = String(decoding: sent, as: UTF8.self)
      guard let end = text.firstRange(of: "\r\n\r\n") else { return [] }
      return text[end.upperBound...].utf8.filter { $0 == UInt8(ascii: "x") }
    }
  }

  static let scenarios = (try? Corpora.decode([Scenario].self, from: "faults/scenarios.json")) ?? []

  @Test(.enabled(if: Corpora.shouldRun, Comment(rawValue: Corpora.absence))) func theCorpusIsThere() throws {
    let scenarios = try Corpora.decode([Scenario].self, from: "faults/scenarios.json")
    #expect(scenarios.count >= 123)
    #expect(scenarios.count == Self.scenarios.count)
  }

  @Test(arguments: scenarios) func overTCP(_ scenario: Scenario) async throws {
    let loop = try ClientLoop()
    defer { loop.stop() }
    try await check(scenario, from: try TestServer(), by: nil, on: loop)
  }

  /// Over TLS, an orderly end sends close_notify, and a broken connection does not.
  @Test(arguments: scenarios, [TestServer.TLS.Version.tls1_2, .tls1_3])
  func overTLS(_ scenario: Scenario, version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    try await check(scenario, from: server, by: client.security, on: client.loop)
  }

  private func check(
    _ scenario: Scenario, from server: TestServer, by security: Security?, on loop: ClientLoop
  ) async throws {
    server.enqueue(Self.script(scenario))
    // Only scenarios that can end in no other way have a deadline, so that its length decides nothing.
    let isEndless = scenario.expect == "error:timedOut"
    let (error, delivered) = await Self.fetch(
      from: server, by: security, on: loop, deadline: isEndless ? .milliseconds(200) : nil)

    let isError = error != nil
    switch scenario.expect {
    case "ok":
      #expect(!isError, "\(String(describing: error))")
      #expect(delivered == scenario.body)
    case _ where scenario.expect.hasPrefix("ok-partial"):
      // A body without a length ends with the connection, so a cut cannot be detected.
      #expect(!isError, "\(String(describing: error))")
      #expect(delivered == scenario.body)
    case "error:timedOut":
      let isTimeOut = if case .timedOut? = error { true } else { false }
      #expect(isTimeOut, "\(String(describing: error))")
    case _ where scenario.expect.hasPrefix("error:connectionLost"):
      let isLoss =
        switch error {
        case .connectionLost?, .badResponse(.truncated)?: true
        default: false
        }
      #expect(isLoss, "\(String(describing: error))")
    default: Issue.record("an expectation that this test does not know: \(scenario.expect.prefix(60))")
    }
    #expect(scenario.body.starts(with: delivered))
    server.stop()
    // On a slow machine the deadline may pass before the request has been sent, which the script expects.
    if !isEndless { #expect(server.failures == []) }
  }

  /// Makes one request, and returns the error and the delivered bytes.
  static func fetch(
    from server: TestServer, by security: Security?, on loop: ClientLoop, deadline: Duration?
  ) async -> (TransportError?, [UInt8]) {
    let port = UInt16(server.port)
    return await loop.run {
      let delivered = Shared<[UInt8]>([])
      do {
        let connection = try await Connection.open(
          to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
        let until = deadline.map { loop.now.advanced(by: $0) } ?? .never
        let exchange = try await connection.send(request(), deadline: until)
        while try await exchange.receiveData({ piece in
          for index in piece.indices { delivered.value.append(piece[index]) }
        }) {}
        return (nil, delivered.value)
      } catch let error as TransportError {
        return (error, delivered.value)
      } catch {
        Issue.record("an error of another kind: \(error)")
        return (nil, delivered.value)
      }
    }
  }

  static func script(_ scenario: Scenario) -> TestServer.Script {
    var steps: [TestServer.Step] = [.expectRequest]
    for step in scenario.steps {
      switch step.op {
      case "send": steps.append(.send(latin1: step.latin1 ?? "", inPiecesOf: step.segment ?? .max))
      case "fin": steps.append(.close)
      case "rst": steps.append(.reset)
      case "shutdown_write": steps.append(.halfClose)
      case "hang": steps.append(.hang)
      default: Issue.record("a step that this test does not know: \(step.op)")
      }
    }
    return TestServer.Script(steps)
  }
}
