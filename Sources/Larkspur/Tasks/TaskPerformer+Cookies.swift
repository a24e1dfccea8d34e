import Foundation

/// The cookies of a task's requests and responses. A storage that is a program's own subclass is asked by its members that
/// take a task, as Apple documents it, on the queue for strangers' code.
extension TaskPerformer {
  /// Whether the storage's cookies go along. Those that the request has of its own go in their place, as Apple documents it, but
  /// not behind a redirection: that may have set others.
  func handlesCookies(of request: URLRequest) -> Bool {
    request.httpShouldHandleCookies && core.sendsCookies
      && (machine.redirectCount > 0 || request.own.fields?.value(of: "Cookie") == nil)
  }

  func cookieField(from jar: HTTPCookieStorage, for request: URLRequest) async throws(URLError) -> String? {
    guard handlesCookies(of: request) else { return nil }
    let (task, question) = (task, Question<[HTTPCookie]?>())
    HTTPCookieStorage.notifications.async { jar.getCookiesFor(task) { question.answer($0) } }
    let answer = try await waiting(givingUpBy: { question.giveUp() }, { await question.wait() })
    guard let cookies = answer ?? nil else { return nil }
    return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
  }

  /// Those of a response that sets some, in a storage that is ours.
  func keepCookiesNow(of response: HTTPURLResponse, _ request: URLRequest) {
    guard request.httpShouldHandleCookies, let jar = core.cookieStorage, let url = request.url else { return }
    jar.store(
      setCookieFields: response.fields.values(of: "Set-Cookie"), from: url, mainDocument: request.mainDocumentURL,
      isTopLevel: request.isTopLevel, policy: core.cookieAcceptPolicy, now: Date())
  }

  func keepCookies(of response: HTTPURLResponse, _ request: URLRequest) async throws(URLError) {
    guard let jar = core.cookieStorage, jar.isSubclass else { return keepCookiesNow(of: response, request) }
    guard request.httpShouldHandleCookies, let url = request.url else { return }
    let fields = response.fields.values(of: "Set-Cookie")
    guard jar.accepts(core.cookieAcceptPolicy ?? .always, from: url, mainDocument: request.mainDocumentURL) else {
      return
    }
    let cookies = fields.flatMap { HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": $0], for: url) }
    let task = task
    try await doElsewhere(on: HTTPCookieStorage.notifications) { jar.storeCookies(cookies, for: task) }
  }
}
