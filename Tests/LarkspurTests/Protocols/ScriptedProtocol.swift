import Foundation
import Larkspur
import Synchronization

/// A protocol that runs a test's script. Each script has a host of its own, so that tests do not interfere.
final class ScriptedProtocol: URLProtocol, @unchecked Sendable {
  /// The script, and the events of the protocol objects made for it.
  final class Script: Sendable {
    let url: URL
    fileprivate let start: @Sendable (ScriptedProtocol) -> Void
    private let log = Mutex<[String]>([])
    private let protocols = Mutex<[ScriptedProtocol]>([])
    private let waiter = Mutex<[(count: Int, of: String, continuation: CheckedContinuation<Void, Never>)]>([])

    init(_ url: URL, _ start: @escaping @Sendable (ScriptedProtocol) -> Void) {
      self.url = url
      self.start = start
    }

    var events: [String] { log.withLock { $0 } }

    var made: [ScriptedProtocol] { protocols.withLock { $0 } }

    fileprivate func made(_ one: ScriptedProtocol) { protocols.withLock { $0.append(one) } }

    func note(_ event: String) {
      log.withLock { $0.append(event) }
      wakeWaiters()
    }

    private func wakeWaiters() {
      let events = events
      let due = waiter.withLock { waiters in
        let due = waiters.filter { waiting in events.count(where: { $0 == waiting.of }) >= waiting.count }
        waiters.removeAll { waiting in events.count(where: { $0 == waiting.of }) >= waiting.count }
        return due
      }
      for waiting in due { waiting.continuation.resume() }
    }

    /// Suspends until `event` has occurred `count` times.
    func wait(for event: String, count: Int = 1) async {
      await withCheckedContinuation { continuation in
        waiter.withLock { $0.append((count, event, continuation)) }
        wakeWaiters()
      }
    }

    /// Creates an ephemeral configuration with this protocol.
    func configuration() -> URLSessionConfiguration {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.protocolClasses = [ScriptedProtocol.self]
      return configuration
    }

    func session(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
      URLSession(configuration: configuration(), delegate: delegate, delegateQueue: nil)
    }
  }

  private static let scripts = Mutex<[String: Script]>([:])

  static func script(_ start: @escaping @Sendable (ScriptedProtocol) -> Void) throws -> Script {
    let host = UUID().uuidString.lowercased() + ".test"
    guard let url = URL(string: "http://\(host)/") else { throw URLError(.badURL) }
    let script = Script(url, start)
    scripts.withLock { $0[host] = script }
    return script
  }

  private static func script(for request: URLRequest) -> Script? {
    guard let host = request.url?.host else { return nil }
    return scripts.withLock { $0[host] }
  }

  override class func canInit(with request: URLRequest) -> Bool { script(for: request) != nil }

  override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let script = Self.script(for: request) else { return }
    script.made(self)
    script.note("start")
    script.start(self)
  }

  override func stopLoading() { Self.script(for: request)?.note("stop") }

  // MARK: - Calls for scripts

  func respond(
    _ status: Int = 200, _ fields: [String: String] = [:], policy: URLCache.StoragePolicy = .notAllowed
  ) {
    guard let url = request.url,
      let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
    else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: policy)
  }

  func load(_ text: String) { client?.urlProtocol(self, didLoad: Data(text.utf8)) }

  func finish() { client?.urlProtocolDidFinishLoading(self) }

  func fail(_ error: any Error) { client?.urlProtocol(self, didFailWithError: error) }

  func redirect(to url: URL) {
    guard let own = request.url,
      let response = HTTPURLResponse(
        url: own, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: ["Location": url.absoluteString])
    else { return }
    client?.urlProtocol(self, wasRedirectedTo: URLRequest(url: url), redirectResponse: response)
  }
}

/// A delegate that records the calls of a session.
final class RecordingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
  private let log = Mutex<[String]>([])
  private let end = Mutex<(error: (any Error)?, isOver: Bool, waiter: CheckedContinuation<Void, Never>?)>(
    (nil, false, nil))
  let redirection: @Sendable (URLRequest) -> URLRequest?
  let disposition: URLSession.ResponseDisposition
  let credential: @Sendable (URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?)?
  let bodyStream: (@Sendable () -> InputStream?)?
  let heard: @Sendable (String) -> Void

  init(
    redirection: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 },
    disposition: URLSession.ResponseDisposition = .allow,
    credential:
      @escaping @Sendable (URLAuthenticationChallenge) -> (
        URLSession.AuthChallengeDisposition, URLCredential?
      )? = { _ in (.performDefaultHandling, nil) }, bodyStream: (@Sendable () -> InputStream?)? = nil,
    heard: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    self.redirection = redirection
    self.disposition = disposition
    self.credential = credential
    self.bodyStream = bodyStream
    self.heard = heard
  }

  var events: [String] { log.withLock { $0 } }
  var error: (any Error)? { end.withLock { $0.error } }

  private func note(_ event: String) {
    log.withLock { $0.append(event) }
    heard(event)
  }

  /// Suspends until a task has completed.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = end.withLock { end -> Bool in
        if end.isOver { return true }
        end.waiter = continuation
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    note("redirect \(response.statusCode) \(request.url?.path ?? "")")
    completionHandler(redirection(request))
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    note("challenge")
    if let (disposition, credential) = credential(challenge) { completionHandler(disposition, credential) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    note("stream")
    completionHandler(bodyStream?())
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
    completionHandler(disposition)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) { note("download") }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    note("data " + String(decoding: data, as: UTF8.self))
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    note("cache \(String(decoding: proposedResponse.data, as: UTF8.self))")
    completionHandler(proposedResponse)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) { note("file " + ((try? String(contentsOf: location, encoding: .utf8)) ?? "?")) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    note("metrics \(metrics.transactionMetrics.count)")
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note(error == nil ? "end" : "failure")
    let waiter = end.withLock { end -> CheckedContinuation<Void, Never>? in
      end.error = error
      end.isOver = true
      return end.waiter.take()
    }
    waiter?.resume()
  }
}
