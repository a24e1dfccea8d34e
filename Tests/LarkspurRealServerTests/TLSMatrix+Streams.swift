import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

// How streams end, and messages in the middle of them.

extension TLSMatrix {
  static let ourStreamRows: [Row] = [
    Row(
      "ours: TLS close without close_notify mid-body (CL)",
      script(
        "seven bytes missing", .failsOtherwise(.badResponse(.truncated(.body(missing: 7)))),
        then: [.send(lengthHead + "hello"), .closeWithoutNotify]),
      script(
        "with close_notify", .failsOtherwise(.badResponse(.truncated(.body(missing: 7)))),
        then: [.send(lengthHead + "hello"), .close]),
      script("nothing missing", then: [.send(lengthHead + "hello, world"), .closeWithoutNotify]),
      script(
        "chunked", .failsOtherwise(.badResponse(.truncated(.chunkedBody))),
        then: [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .closeWithoutNotify]),
      script(
        "before the head", .failsOtherwise(.badResponse(.truncated(.beforeHead))), then: [.closeWithoutNotify])),
    Row(
      "ours: close without close_notify, close-delimited body",
      script("cut", .fails(.truncated), then: [.send(endlessHead + "hello"), .closeWithoutNotify]),
      script("ended", then: [.send(endlessHead + "hello"), .close])),
    Row(
      "ours: close_notify then RST",
      script("length", then: [.send(lengthHead + "hello, world"), .closeNotify, .reset])),
    Row(
      "ours: plaintext HTTP on TLS port",
      trial("nginx without TLS", .fails(.notTLS), by: [.nginx], versions: [.tls1_3]) { $0.isPlain = true },
      trial("a server that answers at once", .fails(.notTLS), by: [.ours]) { plan in
        plan.script = [.beforeHandshake, .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .hang]
      },
      trial("a server that closes", .fails(.connectionLost), by: [.ours]) { plan in
        plan.script = [.beforeHandshake, .expectBytes(count: 5), .halfClose, .hang]
      }),
  ]

  static let lengthHead = "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"
  static let endlessHead = "HTTP/1.1 200 OK\r\n\r\n"

  /// A trial with the steps that the project's test server performs after the request.
  static func script(
    _ name: String, _ outcome: TLSOutcome = .answered(200), versions: [TLSPlan.Version] = [.tls1_2, .tls1_3],
    then steps: [TestServer.Step]
  ) -> Trial {
    trial(name, outcome, by: [.ours], versions: versions) { $0.script = .init([.expectRequest] + steps) }
  }
}
