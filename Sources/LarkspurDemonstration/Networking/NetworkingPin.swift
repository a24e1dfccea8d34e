import AFNetworking
import LarkspurTestServer

extension DemoPart {
  /// A security policy with another server's certificate: the manager does not send the request.
  static let networkingPin = DemoPart("AFNetworking: a pinned policy that refuses") { stage in
    let base = URL(string: stage.secureURL("/"))
    let manager = AFHTTPSessionManager(baseURL: base, sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let other = try TestCA().issue()
    let policy = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: [Data(other.certificateDER)])
    policy.allowInvalidCertificates = true
    manager.securityPolicy = policy
    let requestsBefore = stage.secureServer.requestsReceived
    stage.say("GET \(stage.secureURL("/get")), with another server's certificate pinned")
    do {
      _ = try await manager.get("get")
    } catch {
      let code = (error as NSError).code
      stage.say("\(code): \(error.localizedDescription)")
      try DemoFailure.unless(code == URLError.Code.serverCertificateUntrusted.rawValue, "the error is another one")
      try DemoFailure.unless(
        stage.secureServer.requestsReceived == requestsBefore, "the server has got a request all the same")
      return "refused before anything was sent"
    }
    throw DemoFailure("the manager has not noticed")
  }
}
