import Foundation
import LarkspurEngine
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Tests how `AuthenticationFlow` combines server challenges, the session's `AuthenticationMemory` and the
/// program's credential storage.
@Suite struct AuthenticationFlowTests {
  typealias Conversation = AuthenticationFlow

  static let basic = ["Basic realm=\"r\""]
  static let user = URLCredential(user: "u", password: "p", persistence: .forSession)
  static let basicValue = "Basic dTpw"

  /// The session's side of a conversation: a credential storage and the memory that uses it.
  struct Session {
    let storage = URLCredentialStorage()
    let memory: AuthenticationMemory

    init() { memory = AuthenticationMemory(storage: storage) }

    func conversation(_ text: String = "http://a.example/x/y", proxy: Proxy? = nil) throws -> Conversation {
      let url = try #require(URL(string: text))
      let target = try #require(proxy.map(AuthenticationTarget.init(proxy:)) ?? AuthenticationTarget(origin: url))
      let request = AuthenticatedRequest(method: "GET", target: proxy == nil ? url.path : text, to: target.role)
      let source = SessionCredentials(
        url: proxy == nil ? url : nil, memory: memory, storage: storage, task: nil)
      return Conversation(with: target, about: request, from: source)
    }

    /// Runs one challenge that `credential` answers successfully, so that the session keeps it.
    func logIn(
      _ credential: URLCredential = user, at url: String = "http://a.example/x/y", proxy: Proxy? = nil,
      fields: [String] = basic
    ) throws {
      var conversation = try conversation(url, proxy: proxy)
      _ = conversation.challenged(fields, canHashBody: true)
      #expect(value(of: conversation.replied(.useCredential(credential))) != nil)
      conversation.accepted(info: [])?()
    }

    func preemptiveValue(_ url: String = "http://a.example/x/y", proxy: Proxy? = nil) throws -> String? {
      var conversation = try conversation(url, proxy: proxy)
      return conversation.preemptiveValue()
    }
  }

  static func value(of step: Conversation.Step) -> String? { if case .send(let value) = step { value } else { nil } }
  static func question(of step: Conversation.Step) -> Conversation.Question? {
    if case .ask(let question) = step { question } else { nil }
  }
  static func reason(of step: Conversation.Step) -> AuthenticationMachine.Reason? {
    if case .deliver(let reason) = step { reason } else { nil }
  }

  // MARK: - One request

  @Test func whatTheDelegateSees() throws {
    var conversation = try Session().conversation("https://A.example:8443/x")
    #expect(conversation.preemptiveValue() == nil)
    let step = conversation.challenged(["Digest realm=d, nonce=n, Basic realm=b"], canHashBody: true)
    let challenge = try #require(Self.question(of: step)).challenge(response: nil)
    #expect(
      challenge.protectionSpace
        == URLProtectionSpace(
          host: "a.example", port: 8443, protocol: "https", realm: "d",
          authenticationMethod: NSURLAuthenticationMethodHTTPDigest))
    #expect(challenge.previousFailureCount == 0 && challenge.proposedCredential == nil && challenge.sender != nil)
    let next = try #require(Self.question(of: conversation.replied(.rejectProtectionSpace)))
    #expect(next.space.authenticationMethod == NSURLAuthenticationMethodHTTPBasic && next.space.realm == "b")
    #expect(Self.reason(of: conversation.replied(.rejectProtectionSpace)) == .noCredential)
    // A reply that arrives after the conversation has ended has no effect.
    guard case .nothing = conversation.replied(.useCredential(Self.user)) else { return #expect(Bool(false)) }
  }

  /// A challenge without a realm finds a credential stored with a `nil` realm, an empty realm or the host's name. RFC
  /// 7617 2 requires a realm, but some servers send none, and programs store credentials for them in these three ways.
  @Test(arguments: [nil, "", "a.example"] as [String?], ["Basic", "basic realm=\"\""])
  func withoutARealm(stored: String?, challenge: String) throws {
    for method in [NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodDefault] {
      let session = Session()
      session.storage.set(
        Self.user,
        for: URLProtectionSpace(
          host: "a.example", port: 80, protocol: "http", realm: stored, authenticationMethod: method))
      var conversation = try session.conversation()
      let question = try #require(Self.question(of: conversation.challenged([challenge], canHashBody: true)))
      #expect(question.proposed === Self.user && question.failures == 0)
      #expect(Self.value(of: conversation.replied(.performDefaultHandling)) == Self.basicValue)
    }
  }

  @Test func aRealmIsNotTheHosts() throws {
    let session = Session()
    for realm in [nil, "", "a.example"] {
      session.storage.set(
        Self.user,
        for: URLProtectionSpace(
          host: "a.example", port: 80, protocol: "http", realm: realm,
          authenticationMethod: NSURLAuthenticationMethodHTTPBasic))
    }
    var conversation = try session.conversation()
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.proposed == nil)
  }

  @Test func ofAProxy() throws {
    for (kind, type) in [
      (Proxy.Kind.http, NSURLProtectionSpaceHTTPProxy), (.https, NSURLProtectionSpaceHTTPSProxy),
      (.socks5, NSURLProtectionSpaceSOCKSProxy),
    ] {
      let proxy = try Proxy(kind, host: "p.example", port: 3128)
      // The user and password of the URL are meant for the origin, so they are not proposed to a proxy.
      var conversation = try Session().conversation("http://u:p@a.example/", proxy: proxy)
      let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
      #expect(question.space.isProxy() && question.space.proxyType == type && question.space.host == "p.example")
      #expect(question.proposed == nil)
    }
  }

  @Test func wrongThenRight() throws {
    let session = Session()
    var conversation = try session.conversation()
    _ = conversation.challenged(Self.basic, canHashBody: true)
    let wrong = URLCredential(user: "u", password: "wrong", persistence: .forSession)
    #expect(Self.value(of: conversation.replied(.useCredential(wrong))) != nil)
    let again = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(again.failures == 1 && again.proposed === wrong)
    #expect(Self.value(of: conversation.replied(.useCredential(Self.user))) == Self.basicValue)
    conversation.accepted(info: [])?()
    #expect(try session.preemptiveValue() == Self.basicValue)
    #expect(session.storage.credentials(for: again.space) == ["u": Self.user])
  }

  /// A 401 response is delivered to the caller if the delegate provides no usable credential, so that the program sees
  /// why the request failed.
  @Test func answersThatAreNone() throws {
    let none: [Conversation.Reply] = [.useCredential(nil), .performDefaultHandling, .rejectProtectionSpace]
    for reply in none {
      var conversation = try Session().conversation()
      _ = conversation.challenged(Self.basic, canHashBody: true)
      #expect(Self.reason(of: conversation.replied(reply)) == .noCredential)
    }
    var conversation = try Session().conversation()
    _ = conversation.challenged(Self.basic, canHashBody: true)
    guard case .cancel = conversation.replied(.cancel) else { return #expect(Bool(false)) }
    var other = try Session().conversation()
    #expect(Self.reason(of: other.challenged([], canHashBody: true)) == .noChallenge)
    #expect(Self.reason(of: other.challenged(Self.basic, canHashBody: true)) == nil)
    var colon = try Session().conversation()
    _ = colon.challenged(Self.basic, canHashBody: true)
    let unusable = URLCredential(user: "a:b", password: "p", persistence: .forSession)
    #expect(Self.reason(of: colon.replied(.useCredential(unusable))) == .credentialUnusable)
  }

  @Test func defaultHandling() throws {
    let session = Session()
    var conversation = try session.conversation()
    let space = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true))).space
    session.storage.setDefaultCredential(Self.user, for: space)
    conversation = try session.conversation()
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.proposed == Self.user)
    #expect(Self.value(of: conversation.replied(.performDefaultHandling)) == Self.basicValue)
    // The server refused the credential, so the conversation does not send it again.
    _ = conversation.challenged(Self.basic, canHashBody: true)
    #expect(Self.reason(of: conversation.replied(.performDefaultHandling)) == .noCredential)
  }

  @Test func aURLWithAUser() throws {
    let session = Session()
    var conversation = try session.conversation("http://us%40er:p%3Ass@a.example/x/y")
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.proposed?.user == "us@er" && question.proposed?.password == "p:ss")
    #expect(Self.value(of: conversation.replied(.performDefaultHandling)) != nil)
    conversation.accepted(info: [])?()
    #expect(try session.preemptiveValue() != nil)
    // The credential of the URL is not written to the storage.
    #expect(session.storage.allCredentials.isEmpty)
  }

  // MARK: - Later requests

  @Test func unaskedAnswers() throws {
    let session = Session()
    try session.logIn()
    #expect(try session.preemptiveValue("http://a.example/x/z") == Self.basicValue)
    #expect(try session.preemptiveValue("http://a.example/") == nil)
    // A remembered credential that the server refuses is forgotten, and the delegate gets a challenge.
    var conversation = try session.conversation()
    #expect(conversation.preemptiveValue() != nil)
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.failures == 0)
    #expect(try session.preemptiveValue() == nil)
    // The storage still has the credential, so the challenge proposes it, but default handling does not send it a
    // second time.
    #expect(question.proposed?.user != nil)
    #expect(Self.value(of: conversation.replied(.performDefaultHandling)) == nil)
  }

  @Test func aStaleNonce() throws {
    let session = Session()
    try session.logIn(fields: ["Digest realm=d, nonce=1, qop=auth"])
    var conversation = try session.conversation()
    #expect(conversation.preemptiveValue()?.contains("nc=00000002") == true)
    let step = conversation.challenged(["Digest realm=d, nonce=2, qop=auth, stale=true"], canHashBody: true)
    let value = try #require(Self.value(of: step))
    #expect(value.contains("nonce=\"2\"") && value.contains("nc=00000001"))
    conversation.accepted(info: ["nextnonce=\"3\""])?()
    #expect(try session.preemptiveValue()?.contains("nonce=\"3\"") == true)
  }

  @Test func oneRequestOnly() throws {
    let session = Session()
    try session.logIn(URLCredential(user: "u", password: "p", persistence: .none))
    #expect(try session.preemptiveValue() == nil)
    #expect(session.storage.allCredentials.isEmpty)
  }

  @Test func everythingIsForgotten() throws {
    let session = Session()
    try session.logIn()
    session.memory.removeAll()
    #expect(try session.preemptiveValue() == nil)
  }

  /// The conversation passes its task to the storage, both to look up and to store a credential, so that a subclass can
  /// decide by the task, as Apple documents.
  @Test func aStorageThatLooksAtTheTask() throws {
    final class Choosy: URLCredentialStorage, @unchecked Sendable {
      override func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: (URLCredential?) -> Void
      ) {
        let user = task.originalRequest?.value(forHTTPHeaderField: "X-User") ?? "nobody"
        completionHandler(URLCredential(user: user, password: "p", persistence: .permanent))
      }

      override func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        let forSession = URLCredential(user: "kept", password: "p", persistence: .forSession)
        super.set(forSession, for: protectionSpace, task: task)
      }
    }
    let url = try #require(URL(string: "http://a.example/"))
    var urlRequest = URLRequest(url: url)
    urlRequest.setValue("me", forHTTPHeaderField: "X-User")
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let storage = Choosy()
    var conversation = Conversation(
      with: try #require(AuthenticationTarget(origin: url)),
      about: AuthenticatedRequest(method: "GET", target: "/", to: .origin),
      from: SessionCredentials(
        url: url, memory: AuthenticationMemory(storage: storage), storage: storage,
        task: session.dataTask(with: urlRequest)))
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.proposed?.user == "me")
    #expect(Self.value(of: conversation.replied(.performDefaultHandling)) != nil)
    conversation.accepted(info: [])?()
    #expect(storage.credentials(for: question.space)?.keys.sorted() == ["kept"])
  }

  /// A session without a credential storage keeps a successful credential itself.
  @Test func noStorage() throws {
    let url = try #require(URL(string: "http://a.example/"))
    let target = try #require(AuthenticationTarget(origin: url))
    let request = AuthenticatedRequest(method: "GET", target: "/", to: .origin)
    let memory = AuthenticationMemory(storage: nil)
    var conversation = Conversation(
      with: target, about: request, from: SessionCredentials(url: url, memory: memory, storage: nil, task: nil))
    _ = conversation.challenged(Self.basic, canHashBody: true)
    _ = conversation.replied(.useCredential(Self.user))
    conversation.accepted(info: [])?()
    #expect(memory.preemptive(to: target, for: request)?.value == Self.basicValue)
  }

  // MARK: - Isolation of credentials

  /// CVE-2026-11856: credentials and challenges of one origin never reach another origin.
  @Test(arguments: ["https://a.example/x/y", "http://b.example/x/y", "http://a.example:8080/x/y"])
  func cve202611856(url: String) throws {
    for fields in [Self.basic, ["Digest realm=r, nonce=n"]] {
      let session = Session()
      try session.logIn(fields: fields)
      #expect(try session.preemptiveValue() != nil)
      var conversation = try session.conversation(url)
      #expect(conversation.preemptiveValue() == nil)
      let question = try #require(Self.question(of: conversation.challenged(fields, canHashBody: true)))
      #expect(question.proposed == nil)
    }
  }

  /// CVE-2026-8927, CVE-2026-7168, CVE-2026-6253: credentials and nonces of one proxy are never used for another proxy.
  @Test func cve20268927() throws {
    let (one, two) = (try Proxy(.http, host: "one", port: 3128), try Proxy(.http, host: "two", port: 3128))
    for fields in [Self.basic, ["Digest realm=r, nonce=n"]] {
      let session = Session()
      try session.logIn(proxy: one, fields: fields)
      #expect(try session.preemptiveValue(proxy: one) != nil)
      #expect(try session.preemptiveValue(proxy: two) == nil)
      var conversation = try session.conversation(proxy: two)
      #expect(try #require(Self.question(of: conversation.challenged(fields, canHashBody: true))).proposed == nil)
    }
  }

  /// CVE-2026-3783: a credential stored for one realm is not proposed for another realm of the same server.
  @Test func cve20263783() throws {
    let session = Session()
    try session.logIn(at: "http://a.example/x/y", fields: ["Basic realm=one"])
    var conversation = try session.conversation()
    let question = try #require(Self.question(of: conversation.challenged(["Basic realm=two"], canHashBody: true)))
    #expect(question.proposed == nil)
  }

  /// CVE-2026-9079: a credential that was removed from the storage, or replaced there, is not sent any more.
  @Test func cve20269079() throws {
    let session = Session()
    try session.logIn()
    let space = try #require(session.storage.allCredentials.keys.first)
    session.storage.remove(Self.user, for: space)
    #expect(try session.preemptiveValue() == nil)
    try session.logIn()
    session.storage.set(URLCredential(user: "u", password: "new", persistence: .forSession), for: space)
    #expect(try session.preemptiveValue() == nil)
  }

  /// CVE-2016-4642: a challenge from a proxy is never answered with the origin's credentials, even if host and port are
  /// equal.
  @Test func cve20164642() throws {
    let session = Session()
    try session.logIn()
    let proxy = try Proxy(.http, host: "a.example", port: 80)
    #expect(try session.preemptiveValue("http://u:p@a.example/x/y", proxy: proxy) == nil)
    var conversation = try session.conversation("http://u:p@a.example/x/y", proxy: proxy)
    #expect(try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true))).proposed == nil)
  }
}
