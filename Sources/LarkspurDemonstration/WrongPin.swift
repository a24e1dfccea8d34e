import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

extension DemoPart {
  /// A server with a valid certificate, but without the pinned key: the client must not send the request.
  static let wrongPin = DemoPart("A server without the pinned key") { stage in
    guard let other = Certificate.read(try TestCA().rootCertificateDER)?.first else {
      throw DemoFailure("the other root cannot be read")
    }
    let security = try stage.security(pins: [other.pin])
    let requestsBefore = stage.secureServer.requestsReceived
    stage.say("GET \(stage.secureURL("/get"))")
    stage.say("pinned: \(other.pin)")
    do {
      try await stage.connectSecurely(by: security).connection.close()
    } catch let error as TransportError {
      guard case .tls(let problem) = error, case .pinMismatch(let mismatch) = problem.problem else { throw error }
      stage.say("TLS: no pin of \(mismatch.server.text) matches")
      for pin in mismatch.seen { stage.say("seen:   \(pin)") }
      try DemoFailure.unless(
        stage.secureServer.requestsReceived == requestsBefore, "the server has got a request all the same")
      return "refused: none of \(mismatch.seen.count) keys is pinned"
    }
    throw DemoFailure("the client has not noticed")
  }
}
