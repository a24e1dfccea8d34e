import Foundation
import Larkspur
import LarkspurConsole
import LarkspurTLS
import LarkspurTestServer

extension DemoPart {
  /// A login that never sends the password: the server sends a challenge, the delegate supplies the password, and the
  /// session computes the response.
  static let digestLogin = DemoPart("A Digest login") { stage in
    let lock = DigestLock(user: "lark", password: "up with the sun", realm: "nest")
    stage.server.route("GET", "/nest") { request in
      guard let authorization = request.fields["Authorization"], lock.opens(authorization, for: request) else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": lock.challenge])
      }
      return .text("five eggs")
    }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let requestsBefore = stage.server.requests.count
    let (data, response) = try await session.data(
      from: try stage.url("/nest"), delegate: KeyHolder(user: lock.user, password: lock.password))
    let text = String(decoding: data, as: UTF8.self)
    let requests = stage.server.requests.dropFirst(requestsBefore)
    for request in requests {
      let value = request.fields["Authorization"].map { $0.prefix { $0 != " " } + " ..., without the password" }
      stage.say("GET /nest, Authorization: \(value ?? "none")")
    }
    let status = (response as? HTTPURLResponse)?.statusCode ?? 0
    stage.say("\(status), \"\(text)\"")
    try DemoFailure.unless(status == 200 && text == "five eggs", "the status is \(status)")
    try DemoFailure.unless(requests.count == 2, "\(requests.count) requests were made")
    let isSent = requests.contains { $0.fields.contains { $0.value.contains(lock.password) } }
    try DemoFailure.unless(!isSent, "the password has travelled")
    return "\(status) after one challenge, SHA-256"
  }
}

/// A delegate that answers a Digest challenge with a user and a password, once.
private final class KeyHolder: NSObject, URLSessionTaskDelegate, Sendable {
  private let user: String
  private let password: String

  init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPDigest,
      challenge.previousFailureCount == 0
    else { return completionHandler(.performDefaultHandling, nil) }
    completionHandler(.useCredential, URLCredential(user: user, password: password, persistence: .none))
  }
}

/// The server's side of Digest (RFC 7616, section 3.4), as far as one client needs it.
private struct DigestLock: Sendable {
  let user: String
  let password: String
  let realm: String
  private let nonce = String(UInt64.random(in: 0...(.max)), radix: 16)

  init(user: String, password: String, realm: String) {
    self.user = user
    self.password = password
    self.realm = realm
  }

  var challenge: String { "Digest realm=\"\(realm)\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=SHA-256" }

  func opens(_ authorization: String, for request: TestServer.Request) -> Bool {
    func part(_ name: String) -> String {
      let pattern = authorization.range(of: "\\b\(name)=\"?[^\",]*", options: .regularExpression)
      return pattern.map { authorization[$0].dropFirst(name.count + 1).filter { $0 != "\"" } }.map { String($0) } ?? ""
    }
    guard authorization.hasPrefix("Digest "), part("username") == user, part("nonce") == nonce,
      part("uri") == request.target, let secret = hash("\(user):\(realm):\(password)"),
      let resource = hash("\(request.method):\(request.target)"),
      let expected = hash("\(secret):\(nonce):\(part("nc")):\(part("cnonce")):\(part("qop")):\(resource)")
    else { return false }
    return part("response") == expected
  }

  private func hash(_ text: String) -> String? {
    MessageDigest.of(Array(text.utf8), .sha256)?.map {
      Format.padded(String($0, radix: 16), to: 2, with: "0", atEnd: false)
    }.joined()
  }
}
