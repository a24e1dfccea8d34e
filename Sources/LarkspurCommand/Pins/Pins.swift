import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// `larkspur pins`: prints the pins of a server's keys.
struct Pins {
  private let options: PinsOptions
  private let loop: ClientLoop

  init(_ options: PinsOptions, on loop: ClientLoop) {
    self.options = options
    self.loop = loop
  }

  func run() async -> ExitStatus {
    do throws(CommandFailure) {
      let url = try RequestURL.parse(options.url, assuming: "https")
      guard url.isSecure else {
        throw CommandFailure(
          .unsupportedProtocol, "\(RequestURL.redacted(options.url)): only https:// has certificates")
      }
      let trust = try await trust(of: url, by: try security(for: url))
      for line in TrustReport.pins(of: trust) { Console.print(line + "\n") }
      return .success
    } catch {
      return error.report()
    }
  }

  /// Makes the TLS settings of a connection without a session.
  private func security(for url: RequestURL) throws(CommandFailure) -> Security {
    var trust = try SessionSetUp.trust(options.tls, url)
    options.tls.warnOfKeyLog()
    trust.dangerousKeyLogFile = options.tls.keyLogFile
    var configuration = TLSConfiguration()
    configuration.minimumVersion = options.tls.minimumVersion
    configuration.maximumVersion = options.tls.maximumVersion
    trust.apply(to: &configuration)
    do throws(TLSError) {
      return Security(try TLSContext(configuration))
    } catch {
      throw CommandFailure(ExitStatus(error), "cannot set up TLS: \(error)")
    }
  }

  private func trust(of url: RequestURL, by security: Security) async throws(CommandFailure) -> Trust {
    let deadline = options.connectTimeout.map { loop.kernel.now().advanced(by: $0) } ?? .never
    var handshake: Handshake?
    do throws(TransportError) {
      let connection = try await Connection.open(
        host: url.host, port: url.port, security: security, on: loop, deadline: deadline,
        observer: { event, _ in if case .secured(let made) = event { handshake = made } })
      connection.close()
    } catch {
      throw Peer(url, address: nil).failure(error, connectTimeout: options.connectTimeout, maxTime: nil)
    }
    guard let handshake else { throw CommandFailure(.defect, "the handshake has left no trace") }
    return handshake.trust
  }
}
