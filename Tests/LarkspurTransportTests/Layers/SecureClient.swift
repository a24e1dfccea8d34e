import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// A client of a TLS test server: a configuration, a loop, and the outcome of one request.
final class SecureClient: @unchecked Sendable {
  let loop: ClientLoop
  var security: Security

  /// Creates a client that trusts `ca` only.
  init(
    trusting ca: TestCA, on kernel: any Kernel = LinuxKernel.shared,
    _ change: (inout TLSConfiguration) -> Void = { _ in },
    pinMismatched: (@Sendable (PinMismatch) -> Void)? = nil,
    fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)? = nil
  ) throws {
    loop = try ClientLoop(on: kernel)
    var configuration = TLSConfiguration()
    configuration.roots = .only(try [ca].map { try Certificate.one($0.certificate) })
    change(&configuration)
    security = try Security(configuration, pinMismatched: pinMismatched, fileFailed: fileFailed)
  }

  deinit {
    loop.stop()
  }

  struct Outcome: Sendable {
    var status = 0
    var body: [UInt8] = []
    var handshake: Handshake?
    var error: TransportError?

    var problem: TLSError.Problem? {
      if case .tls(let error)? = error { error.problem } else { nil }
    }

    /// OpenSSL's text, which a TLS error carries if OpenSSL reported one.
    var reason: String? {
      if case .tls(let error)? = error { error.reason } else { nil }
    }
  }

  /// Requests `/get` over a new connection.
  func get(
    from server: TestServer, host: String = "localhost", deadline: Duration? = nil, target: String = "/get"
  ) async -> Outcome {
    let (loop, security, port) = (loop, security, UInt16(server.port))
    return await loop.run {
      var outcome = Outcome()
      let handshake = Shared<Handshake?>(nil)
      do throws(TransportError) {
        let until = deadline.map { loop.kernel.now().advanced(by: $0) } ?? .never
        let connection = try await Connection.open(
          to: [.loopback(port: port)], as: host, security: security, on: loop, deadline: until,
          observer: { event, _ in if case .secured(let made) = event { handshake.value = made } })
        defer { connection.close() }
        outcome.handshake = handshake.value
        try await connection.cancelledWithTask { () async throws(TransportError) in
          let exchange = try await connection.send(request("GET", target), deadline: until)
          outcome.status = exchange.status
          while try await exchange.receiveData({ outcome.body.append(copying: $0) }) {}
        }
      } catch {
        outcome.handshake = handshake.value
        outcome.error = error
      }
      return outcome
    }
  }
}

extension Certificate {
  struct Unreadable: Error {}

  static func one(_ made: TestCertificate) throws -> Certificate {
    guard let certificate = Certificate.read(made.certificateDER)?.first else { throw Unreadable() }
    return certificate
  }
}
