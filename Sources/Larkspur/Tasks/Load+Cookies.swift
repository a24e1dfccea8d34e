import Foundation
import LarkspurBytes
import LarkspurEngine

/// The cookies of a task's requests and responses. A storage of a subclass is called by its methods that take a task,
/// as Apple documents it, on a queue for the program's code.
extension Load {
  func addCookies(of jar: HTTPCookieStorage) async throws(URLError) {
    guard let load = networkLoad else { throw Self.inconsistency }
    load.hasCookies = true
    load.additions.cookie = try await cookieField(from: jar, for: load.request)
  }

  private func cookieField(from jar: HTTPCookieStorage, for request: URLRequest) async throws(URLError) -> String? {
    guard core.handlesCookies(of: request, isRedirected: machine.redirectCount > 0) else { return nil }
    let (task, question) = (task, OneShot<[HTTPCookie]?>())
    HTTPCookieStorage.notifications.async { jar.getCookiesFor(task) { question.set($0) } }
    let answer = try await waiting(cancellingBy: { question.cancel() }, { await question.get() })
    guard let cookies = answer ?? nil else { return nil }
    return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
  }

  func keepCookies(of response: HTTPURLResponse, _ request: URLRequest) async throws(URLError) {
    guard let jar = core.cookieStorage, jar.isSubclass else { return core.keepCookies(of: response, request) }
    guard request.httpShouldHandleCookies, let url = request.url else { return }
    let fields = response.fields.values(of: "Set-Cookie")
    let policy = core.settings.cookieAcceptPolicy?.wrappedValue ?? .always
    guard jar.accepts(policy, from: url, mainDocument: request.mainDocumentURL) else {
      return
    }
    let cookies = jar.cookies(
      setCookieFields: fields, from: url, mainDocument: request.mainDocumentURL, isTopLevel: request.isTopLevel,
      now: Date())
    guard !cookies.isEmpty else { return }
    let task = task
    try await doElsewhere(on: HTTPCookieStorage.notifications) { jar.storeCookies(cookies, for: task) }
  }
}
