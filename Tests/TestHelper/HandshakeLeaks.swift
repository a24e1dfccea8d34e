// Ten thousand handshakes that fail at random points, in a process of their own, so that its memory and descriptors
// are those of the handshakes alone. Prints what is left behind, and fails if anything is.
//
//   TestHelper handshake-leaks [SEED]

import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit

private let warmUp = 2_000
private let handshakes = 10_000
/// Maximum growth of the resident memory, in KiB: the allocator keeps some freed memory.
private let growthKiBMax = 4 * 1024

/// Returns a server script that ends the handshake at a random point and in a random way. The server sends about 1,600
/// bytes in a handshake.
private func script(_ generator: inout SeededGenerator) -> TestServer.Script {
  let count = Int.random(in: 0...2500, using: &generator)
  switch Int.random(in: 0..<8, using: &generator) {
  case 0, 1, 2: return [.beforeHandshake, .reset(afterSending: count), .handshake, .expectRequest, .close]
  case 3, 4: return [.beforeHandshake, .close(afterSending: count), .handshake, .expectRequest, .close]
  case 5: return [.beforeHandshake, .refuseHandshake(alert: UInt8.random(in: 10...120, using: &generator))]
  case 6:
    let garbage = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    return [.beforeHandshake, .send([22, 3, 3, UInt8(count >> 8), UInt8(count & 255)] + garbage), .close]
  default: return [.beforeHandshake, .stall(afterSending: count), .handshake, .expectRequest, .close]
  }
}

/// Returns four clients: with and without trust in the server's root, each with and without an own trust decision.
private func clients(_ ca: TestCA, _ generator: inout SeededGenerator) throws -> [Security] {
  let roots = try [ca, TestCA()].map { Certificate.read($0.rootCertificateDER) ?? [] }
  return try roots.flatMap { roots in
    var configuration = TLSConfiguration()
    configuration.roots = .only(roots)
    let plain = Security(try TLSContext(configuration))
    var asking = Security(try TLSContext(configuration))
    asking.decideTrust = { _ in .verified }
    return [plain, asking]
  }
}

func runHandshakeLeaks(_ arguments: [String]) async throws {
  var generator = SeededGenerator(seed: arguments.first.flatMap { UInt64($0) } ?? 1)
  let ca = try TestCA()
  var options = TestServer.Options()
  // Keeps the server's own request records from growing the process.
  options.requestsKept = 100
  let server = try TestServer(options, tls: .init(certificate: try ca.issue()))
  let loop = try ClientLoop()
  let securities = try clients(ca, &generator)
  let port = UInt16(server.port)
  var failures = 0
  var before = Footprint.now()
  for number in 0..<(warmUp + handshakes) {
    if number == warmUp {
      try await server.waitForClosedConnections(number)
      before = Footprint.now()
      failures = 0
    }
    let script = script(&generator)
    server.enqueue(script)
    let security = securities[number % securities.count]
    let error = await loop.run { () async -> TransportError? in
      do throws(TransportError) {
        // The deadline ends the wait for a server that stalls.
        let connection = try await Connection.open(
          to: [.loopback(port: port)], as: "localhost", security: security, on: loop,
          deadline: loop.kernel.now().advanced(by: .milliseconds(20)))
        defer { connection.close() }
        let exchange = try await connection.send(
          request(), deadline: loop.kernel.now().advanced(by: .milliseconds(20)))
        try await exchange.discardBody()
        return nil
      } catch {
        return error
      }
    }
    if error != nil { failures += 1 }
  }
  try await server.waitForClosedConnections(warmUp + handshakes)
  let after = Footprint.now()
  let grown = after.residentKiB - before.residentKiB
  let open = after.descriptors - before.descriptors
  let slots = await loop.run { loop.slotsInUse }
  print("\(failures) of \(handshakes) failed; \(grown) KiB, \(open) descriptors, \(slots) slots are left behind")
  guard failures == handshakes, grown <= growthKiBMax, open <= 0, slots == 0 else {
    throw Failure("a handshake succeeded, or something is left behind")
  }
}
