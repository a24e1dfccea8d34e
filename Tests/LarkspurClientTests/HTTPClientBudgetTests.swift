import CAllocations
import LarkspurTestServer
import LarkspurTransport
import Testing

@testable import LarkspurClient

/// The cost of a client's request on a warm connection. The numbers are counted, not timed, and may only fall.
@Suite struct HTTPClientBudgetTests {
  private static let requests = 500

  private static let allocationsPerRequestMax: UInt64 = 10

  /// The caller runs on the loop, so that one thread does the whole work of a request. Other tests may use that loop in
  /// between: the middle one of the counts has nothing of theirs.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"))
  func allocationsPerRequest() async throws {
    let server = try TestServer()
    server.defaultScript = [
      .repeat([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!")])
    ]
    let client = HTTPClientTests.client()
    let url = server.url()
    let counts = try await client.engine.get().loop.run {
      var counts: [UInt64] = []
      for _ in 0..<Self.requests {
        let before = larkspur_allocations()
        let body = try await client.get(url) { try await $0.body.collect(upTo: 13) }
        counts.append(larkspur_allocations() &- before)
        #expect(body.count == 13)
      }
      return counts
    }
    let middle = counts.sorted()[Self.requests / 2]
    #expect(middle > 0 && middle <= Self.allocationsPerRequestMax)
    #expect(server.connectionsAccepted == 1)
  }
}
