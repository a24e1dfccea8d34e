import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

/// The result of a client's visit to a server.
struct TLSVisit: Sendable {
  var outcome: TLSOutcome
  /// The completed handshake, or `nil` if there was none.
  var handshake: Handshake?
  var replies: [Reply] = []
  /// Whether each connection that was opened in this visit could be used again at its end.
  var isIdle = false
}

enum TLSOutcome: Hashable, Sendable, CustomStringConvertible {
  case answered(Int)
  case fails(TLSError.Problem)
  /// The pins did not match, whatever they are.
  case pinMismatch
  /// The visit failed, but not by TLS.
  case failsOtherwise(TransportError)
  /// An additional condition of the trial was not met.
  case unexpected(String)

  init(_ error: TransportError) {
    switch error {
    case .tls(let error):
      if case .pinMismatch = error.problem { self = .pinMismatch } else { self = .fails(error.problem) }
    default: self = .failsOtherwise(error)
    }
  }

  var description: String {
    switch self {
    case .answered(let status): "an answer with status \(status)"
    case .fails(let problem): "failure: \(problem)"
    case .pinMismatch: "a pin that does not match"
    case .failsOtherwise(let error): "failure outside of TLS: \(error)"
    case .unexpected(let message): message
    }
  }
}

/// A client with a configuration of its own, whose connections share their sessions.
struct TLSClient: Sendable {
  let context: TLSContext
  let decideTrust: (@Sendable (Trust) async -> TrustDecision)?
  let patience: Duration

  init(_ plan: TLSPlan) throws {
    context = try TLSContext(plan.configuration)
    decideTrust = plan.decideTrust
    patience = plan.patience
  }

  /// Connects, makes the handshake as `host`, and requests each of `targets` in turn, over one connection. The outcome
  /// is that of the last response, or of the first failure.
  func visit(
    _ server: any TLSServer, as host: String, _ targets: [String] = ["/small"]
  ) async throws -> TLSVisit {
    let loop = try ClientLoop()
    defer { loop.stop() }
    var security = Security(context)
    security.decideTrust = decideTrust
    return await loop.run { [security, patience] in
      await Self.visit(server.tcpPort, as: host, targets, by: security, patience, on: loop)
    }
  }

  private static func visit(
    _ port: UInt16, as host: String, _ targets: [String], by security: Security, _ patience: Duration,
    on loop: ClientLoop
  ) async -> TLSVisit {
    var visit = TLSVisit(outcome: .answered(0))
    let observed = Observed()
    do {
      guard let name = ServerName(host: host) else { throw TransportError.tls(TLSError(.hostInvalid)) }
      let connection = try await Connection.open(to: [.loopback(port: port)], on: loop) { event, _ in
        if case .secured(let handshake) = event { observed.handshake = handshake }
      }
      defer { connection.close() }
      try await connection.secure(
        by: security, as: name, port: port, deadline: LinuxKernel.shared.now().advanced(by: patience))
      for target in targets {
        let reply = try await Ask(target).send(over: connection)
        visit.replies.append(reply)
        visit.outcome = .answered(reply.status)
      }
      visit.isIdle = connection.isIdle
    } catch let error as TransportError {
      visit.outcome = TLSOutcome(error)
    } catch {
      visit.outcome = .failsOtherwise(.internalInconsistency)
    }
    visit.handshake = observed.handshake
    return visit
  }

  /// Requests `/small` without TLS.
  func visitPlainly(_ server: any TLSServer) async throws -> TLSVisit {
    let loop = try ClientLoop()
    defer { loop.stop() }
    let port = server.tcpPort
    return try await loop.run {
      let connection = try await Connection.open(to: [.loopback(port: port)], on: loop)
      defer { connection.close() }
      let reply = try await Ask("/small").send(over: connection)
      return TLSVisit(outcome: .answered(reply.status), replies: [reply])
    }
  }

  private final class Observed {
    var handshake: Handshake?
  }
}

extension TLSPlan {
  /// Starts the server, and sends the client there once.
  func play(on kind: TLSServerKind) async throws -> TLSVisit {
    let client = try TLSClient(self)
    let server = try kind.start(self)
    let visit = try await client.visit(server, as: host)
    // The test server's script must not have failed.
    if let server = server as? TestServer, let failure = server.failures.first {
      throw RealServer.Unavailable(description: failure)
    }
    return visit
  }
}
