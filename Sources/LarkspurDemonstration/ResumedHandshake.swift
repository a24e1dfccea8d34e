import LarkspurConsole
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// Two connections, of which the second resumes the session of the first: the server sends no certificate, and no
  /// signature is made or verified.
  static let resumedHandshake = DemoPart("A resumed TLS session") { stage in
    let security = try stage.security()
    var times: [String] = []
    stage.say("Two connections to \(stage.secureURL("/"))")
    for isResumed in [false, true] {
      let secured = try await stage.connectSecurely(by: security)
      let (connection, handshake) = (secured.connection, secured.handshake)
      defer { connection.close() }
      let time = Format.time(secured.time)
      stage.say("\(handshake.isResumed ? "resumed" : "full   ") handshake, \(handshake.version): \(time)")
      try DemoFailure.unless(
        handshake.isResumed == isResumed, isResumed ? "the session was not resumed" : "there was a session already")
      times.append(time)
      // The tickets for the next connection come with the response.
      try await connection.cancelledWithTask {
        let exchange = try await stage.send(try stage.secureRequest("/bytes/100"), over: connection)
        _ = try await exchange.collectBody(bytesMax: 1 << 16)
      }
    }
    return "full \(times[0]), resumed \(times[1])"
  }
}
