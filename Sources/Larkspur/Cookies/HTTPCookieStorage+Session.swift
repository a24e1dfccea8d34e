import Foundation
import LarkspurHTTP
import Synchronization

extension URLRequest {
  /// Whether the method is safe (RFC 9110 9.2.1).
  var isSafe: Bool { CacheRequest.isSafe(own.method) }

  /// Whether the response is a main document, and not a part of one.
  var isTopLevel: Bool { mainDocumentURL == nil || mainDocumentURL == url }
}

/// The interface of the storage to a session's tasks. Performance: a storage without cookies costs a task one atomic
/// load.
extension HTTPCookieStorage {
  /// The queue that runs user code (observers and subclasses) on behalf of sessions.
  static let notifications = DispatchQueue(label: "larkspur.cookies.notifications", qos: .utility)

  /// Whether this is a subclass. A subclass may select among its cookies or store them elsewhere, so a session calls
  /// its members.
  var isSubclass: Bool { type(of: self) != HTTPCookieStorage.self }

  /// Whether there may be cookies. If `false`, there are none, and no field has to be made.
  var mayHaveCookies: Bool { occupancy.load(ordering: .relaxed) != Occupancy.empty.rawValue }

  /// Returns the value of a request's Cookie field, or `nil` if the request has no cookies.
  ///
  /// - Parameters:
  ///   - mainDocument: The document that the request is made for, or `nil` if the request is for a main document
  ///     itself.
  ///   - isSafeMethod: Whether the method is GET, HEAD, OPTIONS or TRACE.
  ///   - isTopLevel: Whether the response is the main document, and not a part of it.
  func cookieField(for url: URL, mainDocument: URL?, isSafeMethod: Bool, isTopLevel: Bool, now: Date) -> String? {
    guard let request = CookieSite.request(url) else { return nil }
    return withJar { jar in
      // The main document's site matters only if there are cookies to send.
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

  /// Returns the cookies that ``cookieField(for:mainDocument:isSafeMethod:isTopLevel:now:)`` sends.
  func cookiesGoing(with request: URLRequest) -> [HTTPCookie]? {
    guard let url = request.url, let plain = CookieSite.request(url) else { return [] }
    let asking = asking(
      plain, url, for: request.mainDocumentURL, isSafeMethod: request.isSafe, isTopLevel: request.isTopLevel)
    let now = CookieTime(Date())
    return withJar { $0.cookies(for: asking, now: now) }.map { HTTPCookie(HTTPCookie.Content($0)) }
  }

  /// Returns the cookies to send with a request. A subclass may remove cookies or add its own by overriding
  /// ``cookies(for:)-(URL)``. A cookie of this storage is sent only where its attributes allow.
  func chosenCookies(for request: URLRequest) -> [HTTPCookie]? {
    let going = cookiesGoing(with: request)
    guard isSubclass, let going, let url = request.url else { return going }
    let own = storedCookies(for: url)
    return cookies(for: url)?.filter { !own.contains($0) || going.contains($0) }
  }

  /// Stores the cookies of a response's Set-Cookie fields, as far as the rules and the policy allow.
  ///
  /// - Parameters:
  ///   - fields: The values, unchanged and in their order.
  ///   - mainDocument: The document that the request was made for, or `nil` if the request was for a main document
  ///     itself.
  ///   - isTopLevel: Whether the response is the main document, and not a part of it.
  ///   - policy: The session's policy, or `nil` for the storage's own. If either is `never`, nothing is stored.
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
      state.jar.receive(fields, from: request, now: time) { suffixes().isPublicSuffix($0) }
      return state.jar.revision != revision
    }
    if isChanged { notify() }
  }

  /// Posts one notification for all changes of the next 10 ms (`notificationDelay`). Observers are user code, so they
  /// do not run on the session's thread.
  private func notify() {
    guard !isNotifying.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Self.notifications.asyncAfter(deadline: .now() + Self.notificationDelay) {
      self.isNotifying.store(false, ordering: .releasing)
      self.postCookiesChanged()
    }
  }

  /// How long changes by responses are collected before observers are notified.
  private static let notificationDelay = DispatchTimeInterval.milliseconds(10)

  private func answered(_ url: URL, for mainDocument: URL?, isTopLevel: Bool) -> CookieRequest? {
    var request = CookieSite.request(url)
    if let mainDocument {
      request?.isSameSite = CookieSite.isSameSite(url, mainDocument, suffixes)
      request?.isTopLevel = isTopLevel
    }
    return request
  }

  /// Returns the cookies of a response's Set-Cookie fields, as far as they are allowed, for a storage that keeps them
  /// elsewhere. An expired cookie removes the stored one.
  func cookies(
    setCookieFields fields: [String], from url: URL, mainDocument: URL?, isTopLevel: Bool, now: Date
  ) -> [HTTPCookie] {
    guard let request = answered(url, for: mainDocument, isTopLevel: isTopLevel) else { return [] }
    let (suffixes, time) = (suffixes, CookieTime(now))
    return fields.prefix(CookieLimits().perResponseMax).compactMap { SetCookie($0) }.compactMap { parsed in
      let received = CookieJar.cookie(of: parsed, from: request, now: time) { suffixes().isPublicSuffix($0) }
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
