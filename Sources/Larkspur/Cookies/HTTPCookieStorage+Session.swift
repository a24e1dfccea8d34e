import Foundation
import LarkspurHTTP
import Synchronization

extension URLRequest {
  /// Whether its method is safe (RFC 9110 9.2.1).
  var isSafe: Bool { CacheRequest.isSafe(own.method) }

  /// Whether its answer is a main document, and not a part of one.
  var isTopLevel: Bool { mainDocumentURL == nil || mainDocumentURL == url }
}

/// What a session's tasks ask. Without cookies it costs them a look at a number.
extension HTTPCookieStorage {
  /// Where strangers' code is called on account of a session's work.
  static let notifications = DispatchQueue(label: "larkspur.cookies.notifications", qos: .utility)

  /// A subclass may choose among its cookies, or keep them elsewhere: a session then asks its members.
  var isSubclass: Bool { type(of: self) != HTTPCookieStorage.self }

  /// False: there are certainly none, and no field need be asked for.
  var mayHaveCookies: Bool { occupancy.load(ordering: .relaxed) != Occupancy.empty.rawValue }

  /// The value of the Cookie field of a request, or nil if it is to have none.
  ///
  /// - Parameters:
  ///   - mainDocument: The document for whose sake the request is made. Nil: it is for itself.
  ///   - isSafeMethod: The method is one of GET, HEAD, OPTIONS and TRACE.
  ///   - isTopLevel: The answer is the main document, and not a part of it.
  func cookieField(for url: URL, mainDocument: URL?, isSafeMethod: Bool, isTopLevel: Bool, now: Date) -> String? {
    guard let request = CookieSite.request(url) else { return nil }
    return withJar { jar in
      // Who the document belongs to matters only if there is something to send.
      guard !jar.domains(of: request.host).isEmpty else { return nil }
      let asking = asking(request, url, for: mainDocument, isSafeMethod: isSafeMethod, isTopLevel: isTopLevel)
      return jar.field(for: asking, now: CookieTime(now))
    }
  }

  private func asking(
    _ request: CookieRequest, _ url: URL, for mainDocument: URL?, isSafeMethod: Bool, isTopLevel: Bool
  ) -> CookieRequest {
    guard let mainDocument else { return request }
    var request = request
    request.isSameSite = CookieSite.isSameSite(url, mainDocument, suffixes)
    request.isSafeMethod = isSafeMethod
    request.isTopLevel = isTopLevel
    return request
  }

  /// What ``cookieField(for:mainDocument:isSafeMethod:isTopLevel:now:)`` would send, one by one.
  func cookiesGoing(with request: URLRequest) -> [HTTPCookie]? {
    guard let url = request.url, let plain = CookieSite.request(url) else { return [] }
    let asking = asking(
      plain, url, for: request.mainDocumentURL, isSafeMethod: request.isSafe, isTopLevel: request.isTopLevel)
    let now = CookieTime(Date())
    return withJar { $0.cookies(for: asking, now: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// The same. A subclass may choose by what it answers for a URL, or add to it; but where a cookie that is kept here may go, the
  /// cookie says.
  func chosenCookies(for request: URLRequest) -> [HTTPCookie]? {
    let going = cookiesGoing(with: request)
    guard isSubclass, let going, let url = request.url else { return going }
    let own = storedCookies(for: url)
    return cookies(for: url)?.filter { !own.contains($0) || going.contains($0) }
  }

  /// Keeps what the Set-Cookie fields of a response say, as far as it is allowed to.
  ///
  /// - Parameters:
  ///   - fields: The values, each as it came, in their order.
  ///   - mainDocument: As for the request.
  ///   - isTopLevel: As for the request.
  ///   - policy: The session's policy. Nil: the storage's own. `never` of either is never.
  func store(
    setCookieFields fields: [String], from url: URL, mainDocument: URL?, isTopLevel: Bool = true,
    policy: HTTPCookie.AcceptPolicy? = nil, now: Date
  ) {
    guard !fields.isEmpty, policy != .never,
      let request = answered(url, for: mainDocument, isTopLevel: isTopLevel)
    else { return }
    let suffixes = suffixes
    let time = CookieTime(now)
    let isChanged = change { state in
      guard state.policy != .never, accepts(policy ?? state.policy, from: url, mainDocument: mainDocument) else {
        return false
      }
      let revision = state.jar.revision
      for field in fields.prefix(state.jar.limits.perResponseMax) {
        guard let said = SetCookie(field) else { continue }
        _ = state.jar.receive(said, from: request, now: time) { suffixes().isPublicSuffix($0) }
      }
      return state.jar.revision != revision
    }
    if isChanged { notify() }
  }

  /// Posts a notification for all changes of the next few milliseconds. Observers are user code: they do not get the session's
  /// thread.
  private func notify() {
    guard !isNotifying.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Self.notifications.asyncAfter(deadline: .now() + Self.notificationDelay) {
      self.isNotifying.store(false, ordering: .releasing)
      self.postCookiesChanged()
    }
  }

  /// How long the changes of responses are collected before observers hear of them.
  private static let notificationDelay = DispatchTimeInterval.milliseconds(10)

  private func answered(_ url: URL, for mainDocument: URL?, isTopLevel: Bool) -> CookieRequest? {
    var request = CookieSite.request(url)
    if let mainDocument {
      request?.isSameSite = CookieSite.isSameSite(url, mainDocument, suffixes)
      request?.isTopLevel = isTopLevel
    }
    return request
  }

  /// What the Set-Cookie fields of a response set, as far as they may, for a storage that is kept elsewhere. What takes one away is a
  /// cookie that has expired.
  func cookies(
    setCookieFields fields: [String], from url: URL, mainDocument: URL?, isTopLevel: Bool, now: Date
  ) -> [HTTPCookie] {
    guard let request = answered(url, for: mainDocument, isTopLevel: isTopLevel) else { return [] }
    let (suffixes, time) = (suffixes, CookieTime(now))
    return fields.prefix(CookieLimits().perResponseMax).compactMap { SetCookie($0) }.compactMap { said in
      let received = CookieJar.cookie(of: said, from: request, now: time) { suffixes().isPublicSuffix($0) }
      guard case .cookie(let cookie) = received else { return nil }
      return HTTPCookie(HTTPCookie.Content(cookie))
    }
  }

  func accepts(_ policy: HTTPCookie.AcceptPolicy, from url: URL?, mainDocument: URL?) -> Bool {
    switch policy {
    case .always: return true
    case .never: return false
    case .onlyFromMainDocumentDomain:
      guard let url, let mainDocument else { return true }
      return url == mainDocument || CookieSite.isSameDomain(url, mainDocument, suffixes)
    }
  }
}
