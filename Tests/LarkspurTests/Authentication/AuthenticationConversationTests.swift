import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Challenges, the memory of a session and users' credentials, put together.
@Suite struct AuthenticationConversationTests {
  typealias Conversation = AuthenticationConversation

  static let basic = ["Basic realm=\"r\""]
  static let user = URLCredential(user: "u", password: "p", persistence: .forSession)
  static let basicValue = "Basic dTpw"

  /// A session's part.
  struct Session {
    let storage = URLCredentialStorage()
    let memory: AuthenticationMemory

    init() { memory = AuthenticationMemory(storage: storage) }

    func conversation(_ text: String = "http://a.example/x/y", proxy: Proxy? = nil) throws -> Conversation {
      let url = try #require(URL(string: text))
      let target = try #require(proxy.map(AuthenticationTarget.init(proxy:)) ?? AuthenticationTarget(origin: url))
      let request = AuthenticatedRequest(method: "GET", target: proxy == nil ? url.path : text, to: target.role)
      return Conversation(with: target, about: request, url: url, memory: memory, storage: storage)
    }

    /// A login that went well.
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
    // A late answer has no question.
    guard case .nothing = conversation.replied(.useCredential(Self.user)) else { return #expect(Bool(false)) }
  }

  /// RFC 7617 2 requires a realm. Programs store a credential for a server that names none in these ways.
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
      // What stands in the URL is for the origin.
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

  /// A 401 that nobody answers is the result.
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
    // Refused: it is not tried again.
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
    // It stays out of the storage.
    #expect(session.storage.allCredentials.isEmpty)
  }

  // MARK: - Later requests

  @Test func unaskedAnswers() throws {
    let session = Session()
    try session.logIn()
    #expect(try session.preemptiveValue("http://a.example/x/z") == Self.basicValue)
    #expect(try session.preemptiveValue("http://a.example/") == nil)
    // One that is refused is forgotten, and its owner is asked.
    var conversation = try session.conversation()
    #expect(conversation.preemptiveValue() != nil)
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.failures == 0)
    #expect(try session.preemptiveValue() == nil)
    // It is proposed, for the storage has it, but is not sent again by itself.
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

  /// A subclass answers by the task, as Apple documents it, and is told by the task.
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
      about: AuthenticatedRequest(method: "GET", target: "/", to: .origin), url: url,
      memory: AuthenticationMemory(storage: storage), storage: storage, task: session.dataTask(with: urlRequest))
    let question = try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true)))
    #expect(question.proposed?.user == "me")
    #expect(Self.value(of: conversation.replied(.performDefaultHandling)) != nil)
    conversation.accepted(info: [])?()
    #expect(storage.credentials(for: question.space)?.keys.sorted() == ["kept"])
  }

  /// Without a storage the session remembers by itself.
  @Test func noStorage() throws {
    let url = try #require(URL(string: "http://a.example/"))
    let target = try #require(AuthenticationTarget(origin: url))
    let request = AuthenticatedRequest(method: "GET", target: "/", to: .origin)
    let memory = AuthenticationMemory(storage: nil)
    var conversation = Conversation(with: target, about: request, url: url, memory: memory, storage: nil)
    _ = conversation.challenged(Self.basic, canHashBody: true)
    _ = conversation.replied(.useCredential(Self.user))
    conversation.accepted(info: [])?()
    #expect(memory.preemptive(to: target, for: request)?.value == Self.basicValue)
  }

  // MARK: - Whose credentials they are

  /// CVE-2026-11856: what one origin has said and was told never reaches another.
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

  /// CVE-2026-8927, CVE-2026-7168, CVE-2026-6253: a proxy's credentials and nonces are for that proxy.
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

  /// CVE-2026-3783: storages are asked for one space, and nothing is merged.
  @Test func cve20263783() throws {
    let session = Session()
    try session.logIn(at: "http://a.example/x/y", fields: ["Basic realm=one"])
    var conversation = try session.conversation()
    let question = try #require(Self.question(of: conversation.challenged(["Basic realm=two"], canHashBody: true)))
    #expect(question.proposed == nil)
  }

  /// CVE-2026-9079: credentials that were taken away are not used any more.
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

  /// CVE-2016-4642: a proxy's challenge is never answered with what is for the origin.
  @Test func cve20164642() throws {
    let session = Session()
    try session.logIn()
    let proxy = try Proxy(.http, host: "a.example", port: 80)
    #expect(try session.preemptiveValue("http://u:p@a.example/x/y", proxy: proxy) == nil)
    var conversation = try session.conversation("http://u:p@a.example/x/y", proxy: proxy)
    #expect(try #require(Self.question(of: conversation.challenged(Self.basic, canHashBody: true))).proposed == nil)
  }
}
