import LarkspurConsole
import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// A request over HTTPS that requires a pinned key in the server's verified chain.
  static let pinnedRequest = DemoPart("A pinned request over HTTPS") { stage in
    guard let root = Certificate.read(stage.ca.rootCertificateDER)?.first else {
      throw DemoFailure("the test root cannot be read")
    }
    let secured = try await stage.connectSecurely(by: try stage.security(pins: [root.pin]))
    let (connection, handshake) = (secured.connection, secured.handshake)
    defer { connection.close() }
    stage.say("GET \(stage.secureURL("/get"))")
    stage.say("\(handshake.version), \(handshake.cipher)")
    for line in TrustReport.lines(of: handshake.trust) { stage.say(line) }
    stage.say("pinned: \(root.pin)")
    return try await connection.cancelledWithTask {
      let exchange = try await stage.send(try stage.secureRequest("/get"), over: connection)
      let body = try await exchange.collectBody(bytesMax: 1 << 16)
      let answer = "\(exchange.status) \(Format.visible(exchange.headBytes[exchange.head.reason]))"
      stage.say("\(answer), \(body.count) bytes")
      try DemoFailure.unless(exchange.status == 200, "the status is \(exchange.status)")
      try DemoFailure.unless(handshake.trust.result.isTrusted, "the chain is not verified")
      try DemoFailure.unless(
        handshake.trust.verified.contains { $0.pin == root.pin }, "the pinned key is not in the verified chain")
      return "\(answer), \(handshake.version), the pin matches"
    }
  }
}
