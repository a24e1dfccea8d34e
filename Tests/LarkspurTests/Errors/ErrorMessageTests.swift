import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport
import Testing

@testable import Larkspur

/// Tests that `print` shows the reason of each error, and of the error beneath it. An error without a reason is printed
/// as `Code=-1001 "(null)"`.
@Suite struct ErrorMessageTests {
  @Test(
    arguments: [
      .resolutionFailed(host: "a.example", reason: "no such host"), .connectFailed([]), .connectionClosed,
      .connectFailed([.init(address: .loopback(port: 1), error: .connectionRefused)]),
      .localEndpointUnusable(LocalEndpoint(), nil), .optionInvalid("hostOverrides", "no address"), .timedOut(.queueing),
      .timedOut(.resolving), .cancelled,
      .timedOut(.tunnelling), .connectionLost(.receivingBody, nil), .connectionLost(.sending, .connectionReset),
      .tls(TLSError(.wrongHost)), .badResponse(.chunkSizeInvalid), .tooManyWaiting, .bodyFailed(.fileChanged),
      .unavailable(.noBufferSpace), .internalInconsistency, .localMisuse(.slotBusy),
    ] as [TransportError])
  func theTransports(error: TransportError) throws {
    let made = URLError(error, url: URL(string: "http://a.example/"))
    #expect("\(made)".contains("\"\(error)\"") && !"\(made)".contains("(null)"))
    #expect(made.localizedDescription == "\(error)")
    #expect((made as NSError).localizedFailureReason == "\(error)")
  }

  @Test func withoutAMessage() {
    #expect(URLError.make(.timedOut).localizedDescription == "timedOut")
    #expect(!"\(URLError.make(.timedOut))".contains("(null)"))
    #expect(URLError.make(.cancelled).localizedDescription == "cancelled")
  }

  /// The transformations of an error keep its message.
  @Test func movedErrors() {
    let url = URL(string: "http://a.example/")
    let error = URLError.make(.badURL, "no host").failing(at: url).moved(to: url).from(.loopback(port: 1))
    #expect("\(error)".contains("\"no host\""))
  }

  @Test func anInvalidURL() async throws {
    let url = try #require(URL(string: "larkspur-unknown://a.example/"))
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).data(from: url)
    }
    #expect(error.map { "\($0)" }?.contains("unsupported URL") == true)
    #expect(error.map { "\($0)" }?.contains("(null)") == false)
  }
}
