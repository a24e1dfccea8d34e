import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// A delegate can implement the methods that have a completion handler as async functions, as on Darwin, where both are
/// one Objective-C method.
@Suite struct AsyncDelegateTests {
  /// A delegate with async methods only, which suspends before each answer.
  private final class AsyncDelegate: NSObject, URLSessionDataDelegate {
    let asked = Mutex<[String]>([])
    let redirected: URLRequest?
    let disposition: URLSession.ResponseDisposition
    private let end = Mutex<(isOver: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

    init(redirected: URLRequest? = nil, disposition: URLSession.ResponseDisposition = .allow) {
      self.redirected = redirected
      self.disposition = disposition
    }

    private func note(_ word: String) async {
      await Task.yield()
      asked.withLock { $0.append(word) }
    }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      await note("session challenge")
      guard let trust = challenge.protectionSpace.serverTrust else { return (.cancelAuthenticationChallenge, nil) }
      return (.useCredential, URLCredential(trust: trust))
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
      await note("challenge")
      guard challenge.previousFailureCount == 0 else { return (.rejectProtectionSpace, nil) }
      return (.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest
    ) async -> URLRequest? {
      await note("redirection \(response.statusCode) \(request.url?.path ?? "")")
      return redirected
    }

    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream? {
      await note("stream")
      return InputStream(data: Data("streamed".utf8))
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
      await note("response")
      return disposition
    }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
      await note("caching")
      return nil
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      asked.withLock { $0.append(String(decoding: data, as: UTF8.self)) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      asked.withLock { $0.append(error == nil ? "end" : "\((error as? URLError)?.code.rawValue ?? 0)") }
      let waiter = end.withLock { end in
        end.isOver = true
        return end.waiter.take()
      }
      waiter?.resume()
    }

    func run(_ task: URLSessionTask) async -> [String] {
      task.resume()
      await withCheckedContinuation { continuation in
        let isOver = end.withLock { end in
          if !end.isOver { end.waiter = continuation }
          return end.isOver
        }
        if isOver { continuation.resume() }
      }
      return asked.withLock { $0 }
    }
  }

  private func server() throws -> TestServer {
    let server = try TestServer()
    server.route("GET", "/hello") { _ in
      TestServer.Response(status: 200, fields: ["Cache-Control": "max-age=100"], body: .bytes(Array("hello".utf8)))
    }
    server.route("GET", "/moved") { _ in
      TestServer.Response(status: 302, fields: ["Location": "/there"], body: .bytes(Array("moved".utf8)))
    }
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return .text("come in")
    }
    server.route("POST", "/take") { request in .text(String(decoding: request.body, as: UTF8.self)) }
    return server
  }

  private func session(_ delegate: any URLSessionDelegate) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  @Test func aResponseIsAllowedAndNotStored() async throws {
    let server = try server()
    let delegate = AsyncDelegate()
    let session = session(delegate)
    let url = try #require(URL(string: server.url("/hello")))
    #expect(await delegate.run(session.dataTask(with: url)) == ["response", "hello", "caching", "end"])
    #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: url)) == nil)
  }

  @Test func aResponseIsRefused() async throws {
    let server = try server()
    let delegate = AsyncDelegate(disposition: .cancel)
    let url = try #require(URL(string: server.url("/hello")))
    #expect(await delegate.run(session(delegate).dataTask(with: url)) == ["response", "-999"])
  }

  @Test func aRedirectionIsRefused() async throws {
    let server = try server()
    let delegate = AsyncDelegate()
    let url = try #require(URL(string: server.url("/moved")))
    let heard = await delegate.run(session(delegate).dataTask(with: url))
    #expect(heard == ["redirection 302 /there", "response", "moved", "end"])
  }

  @Test func aRedirectionLeadsElsewhere() async throws {
    let server = try server()
    let elsewhere = URLRequest(url: try #require(URL(string: server.url("/hello"))))
    let delegate = AsyncDelegate(redirected: elsewhere)
    let url = try #require(URL(string: server.url("/moved")))
    let (data, _) = try await URLSession(configuration: .ephemeral).data(from: url, delegate: delegate)
    #expect(String(decoding: data, as: UTF8.self) == "hello")
    // The async method without a decision was also called, and the load does not wait for it to return.
    let heard = delegate.asked.withLock { $0 }
    #expect(heard.first == "redirection 302 /there" && heard.contains("hello"))
  }

  @Test func aChallengeIsAnswered() async throws {
    let server = try server()
    let delegate = AsyncDelegate()
    let url = try #require(URL(string: server.url("/secret")))
    #expect(
      await delegate.run(session(delegate).dataTask(with: url)) == [
        "challenge", "response", "come in", "caching", "end",
      ])
  }

  @Test func aCertificateIsTrusted() async throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    let delegate = AsyncDelegate()
    let url = try #require(URL(string: server.url("/status/204")))
    #expect(
      await delegate.run(session(delegate).dataTask(with: url)) == ["session challenge", "response", "caching", "end"])
  }

  @Test func aBodyIsStreamed() async throws {
    let server = try server()
    let delegate = AsyncDelegate()
    var request = URLRequest(url: try #require(URL(string: server.url("/take"))))
    request.httpMethod = "POST"
    let heard = await delegate.run(session(delegate).uploadTask(withStreamedRequest: request))
    #expect(heard == ["stream", "response", "streamed", "end"])
  }

  // MARK: - Choice of the delegate

  /// A delegate that implements no method.
  private final class Silent: NSObject, URLSessionDataDelegate {}

  @Test func theSessionsDelegateIsAskedIfTheTasksHasNeitherForm() async throws {
    let server = try server()
    let delegate = AsyncDelegate()
    let session = session(delegate)
    // In the second round the session already knows that the class has no such method.
    for _ in 0..<2 {
      let url = try #require(URL(string: server.url("/moved")))
      let (data, _) = try await session.data(from: url, delegate: Silent())
      #expect(String(decoding: data, as: UTF8.self) == "moved")
    }
    #expect(delegate.asked.withLock { $0 } == ["redirection 302 /there", "redirection 302 /there"])
  }

  @Test func aDelegateWithNeitherFormGetsWhatASessionWithoutDelegateDoes() async throws {
    let server = try server()
    server.route("GET", "/there") { _ in .text("there") }
    let session = session(Silent())
    for _ in 0..<2 {
      let url = try #require(URL(string: server.url("/moved")))
      let (data, _) = try await session.data(from: url)
      #expect(String(decoding: data, as: UTF8.self) == "there")
    }
  }

  /// A delegate that implements both forms of one method, which Darwin does not allow.
  private final class Both: NSObject, URLSessionTaskDelegate {
    let asked = Mutex<[String]>([])

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      asked.withLock { $0.append("handler") }
      completionHandler(nil)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest
    ) async -> URLRequest? {
      asked.withLock { $0.append("async") }
      return nil
    }
  }

  @Test func theFormWithACompletionHandlerGoesFirst() async throws {
    let server = try server()
    let delegate = Both()
    let url = try #require(URL(string: server.url("/moved")))
    _ = try await URLSession(configuration: .ephemeral).data(from: url, delegate: delegate)
    #expect(delegate.asked.withLock { $0 } == ["handler"])
  }
}
