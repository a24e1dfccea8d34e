import Foundation

#if FOUNDATION_NETWORKING
  import FoundationNetworking
#else
  import Larkspur
#endif

extension UserReports {
  static let authentication = [
    Scenario(name: "401-without-credentials", title: "a 401 that nobody answers is the response") { site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/basic"))
      try expect(loaded.status == 401 && loaded.data == Data("who are you?".utf8), "\(loaded)")
    },
    Scenario(name: "unknown-scheme", title: "a challenge of an unknown scheme is no reason to crash") { site in
      let loaded = await URLSession(configuration: .ephemeral).load(try site.request("/hawk"))
      try expect(loaded.status == 401, "\(loaded)")
    },
    Scenario(name: "use-no-credential", title: ".useCredential with none is answered like no answer") { site in
      let delegate = Login(nil)
      let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
      let loaded = await session.load(try site.request("/basic"))
      try expect(loaded.status == 401 || loaded.error != nil, "\(loaded)")
    },
    Scenario(name: "basic", title: "Basic logs in") { site in try await login(site, "/basic") },
    Scenario(name: "digest", title: "Digest logs in") { site in try await login(site, "/digest") },
    Scenario(name: "redirect-after-basic", title: "a redirect behind a login leads where it says") { site in
      let echo = try echo(try await login(site, "/moved-behind-basic"))
      try expect(echo["target"] as? String == "/anything/there", "\(echo)")
    },
  ]

  @discardableResult
  private static func login(_ site: TestSite, _ path: String) async throws -> Loaded {
    let delegate = Login(URLCredential(user: "user", password: "pass", persistence: .forSession))
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let loaded = await session.load(try site.request(path))
    try expect(loaded.status == 200, "\(loaded)")
    return loaded
  }
}

/// A delegate that answers the first challenge with a credential.
private final class Login: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
  private let credential: URLCredential?

  init(_ credential: URLCredential?) { self.credential = credential }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard challenge.previousFailureCount == 0 else { return completionHandler(.performDefaultHandling, nil) }
    completionHandler(.useCredential, credential)
  }
}
