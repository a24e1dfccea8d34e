import Foundation
import Larkspur
import Synchronization
import Testing

/// Tests cancellation, suspension, challenges and the cache of loads by a protocol class.
@Suite struct ProtocolControlTests {
  // MARK: - Control of the task

  @Test func cancellingStopsTheProtocolOnce() async throws {
    let script = try ScriptedProtocol.script { $0.respond() }
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await script.wait(for: "start")
    task.cancel()
    task.cancel()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .cancelled)
    await script.wait(for: "stop")
    #expect(script.events == ["start", "stop"])
  }

  @Test func aBlockedProtocolBlocksNoOther() async throws {
    let gate = DispatchSemaphore(value: 0)
    let script = try ScriptedProtocol.script { _ in gate.wait() }
    let delegate = RecordingDelegate()
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await script.wait(for: "start")
    task.cancel()
    await delegate.wait()
    #expect(script.events == ["start"])
    gate.signal()
    await script.wait(for: "stop")
    #expect(script.events == ["start", "stop"])
  }

  private final class Thinker: URLProtocol, @unchecked Sendable {
    static let isAsked = DispatchSemaphore(value: 0)
    static let gate = DispatchSemaphore(value: 0)

    override class func canInit(with request: URLRequest) -> Bool {
      isAsked.signal()
      gate.wait()
      return false
    }
  }

  /// A class whose `canInit` blocks does not delay the cancellation of the task.
  @Test func aClassThatThinksForLongHoldsNoTaskUp() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [Thinker.self]
    let delegate = RecordingDelegate()
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: "http://thinker.test/")))
    task.resume()
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        Thinker.isAsked.wait()
        continuation.resume()
      }
    }
    task.cancel()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .cancelled)
    Thinker.gate.signal()
    session.invalidateAndCancel()
  }

  @Test func aSuspendedTaskHearsNothingAndLosesNothing() async throws {
    let script = try ScriptedProtocol.script { _ in }
    let delegate = RecordingDelegate(heard: { if $0 == "data 1" { script.note($0) } })
    let task = script.session(delegate).dataTask(with: script.url)
    task.resume()
    await script.wait(for: "start")
    let one = try #require(script.made.first)
    one.respond()
    one.load("1")
    await script.wait(for: "data 1")
    task.suspend()
    one.load("2")
    one.load("3")
    one.finish()
    #expect(delegate.events == ["response 200", "data 1"])
    #expect(task.state == .suspended)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["response 200", "data 1", "data 2", "data 3", "metrics 1", "end"])
  }

  @Test func aProtocolThatSaysNothingTimesOut() async throws {
    let script = try ScriptedProtocol.script { _ in }
    var request = URLRequest(url: script.url)
    request.timeoutInterval = 1.5
    let error = await #expect(throws: URLError.self) { try await script.session().data(for: request) }
    #expect(error?.code == .timedOut)
    await script.wait(for: "stop")
  }

  @Test func invalidatingCancels() async throws {
    let script = try ScriptedProtocol.script { _ in }
    let delegate = RecordingDelegate()
    let session = script.session(delegate)
    session.dataTask(with: script.url).resume()
    await script.wait(for: "start")
    session.invalidateAndCancel()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .cancelled)
    await script.wait(for: "stop")
  }

  // MARK: - Choice of the class

  @Test func registeredClassesComeAfterTheConfigurations() async throws {
    class Registered: URLProtocol {
      class var name: String { "" }
      override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "registered" }
      override func startLoading() {
        guard let url = request.url else { return }
        let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(Self.name.utf8))
        client?.urlProtocolDidFinishLoading(self)
      }
    }
    final class First: Registered { override class var name: String { "first" } }
    final class Second: Registered { override class var name: String { "second" } }
    final class Own: Registered {
      override class var name: String { "own" }
      // `canInit(with:)` for the task is called in place of the one for the request.
      override class func canInit(with task: URLSessionTask) -> Bool { task.currentRequest?.url?.host == "own" }
    }
    let url = try #require(URL(string: "registered://any"))
    func load(_ url: URL) async throws -> String {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.protocolClasses = [Own.self]
      return String(decoding: try await URLSession(configuration: configuration).data(from: url).0, as: UTF8.self)
    }
    #expect(!URLProtocol.registerClass(NSObject.self))
    #expect(URLProtocol.registerClass(First.self))
    #expect(URLProtocol.registerClass(Second.self))
    // Registering a class again does not add it twice, but moves it to the end, which is asked first.
    #expect(URLProtocol.registerClass(First.self))
    #expect(try await load(url) == "first")
    #expect(URLProtocol.registerClass(Second.self))
    #expect(try await load(url) == "second")
    let own = try #require(URL(string: "registered://own"))
    #expect(try await load(own) == "own")
    let shared = try await URLSession.shared.data(from: url).0
    #expect(String(decoding: shared, as: UTF8.self) == "second")
    URLProtocol.unregisterClass(Second.self)
    #expect(try await load(url) == "first")
    URLProtocol.unregisterClass(First.self)
    URLProtocol.unregisterClass(First.self)
    let error = await #expect(throws: URLError.self) { try await load(url) }
    #expect(error?.code == .unsupportedURL)
  }

  @Test func propertiesStayOnTheRequest() throws {
    let url = try #require(URL(string: "http://host/"))
    let request = NSMutableURLRequest(url: url)
    URLProtocol.setProperty(7, forKey: "number", in: request)
    let copy = request as URLRequest
    #expect(URLProtocol.property(forKey: "number", in: copy) as? Int == 7)
    URLProtocol.removeProperty(forKey: "number", in: request)
    #expect(URLProtocol.property(forKey: "number", in: request as URLRequest) == nil)
    #expect(URLProtocol.property(forKey: "number", in: copy) as? Int == 7)
    #expect(copy == URLRequest(url: url))
    #expect(URLProtocol.requestIsCacheEquivalent(copy, to: URLRequest(url: url)))
    #expect(URLProtocol.canonicalRequest(for: copy) == copy)
    #expect(!URLProtocol.canInit(with: copy))
  }

  // MARK: - Challenges

  /// Records the answer to a challenge as the content of the load, and finishes the load.
  private final class Sender: NSObject, URLAuthenticationChallengeSender {
    private let one: ScriptedProtocol

    init(_ one: ScriptedProtocol) { self.one = one }

    private func say(_ text: String) {
      one.respond()
      one.load(text)
      one.finish()
    }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
      say("use \(credential.user ?? "")")
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { say("without") }
    func cancel(_ challenge: URLAuthenticationChallenge) { say("cancel") }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { say("default") }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) { say("reject") }
  }

  private static func challenge(_ one: ScriptedProtocol) -> URLAuthenticationChallenge {
    let space = URLProtectionSpace(
      host: one.request.url?.host ?? "", port: 80, protocol: "http", realm: "here",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
      sender: Sender(one))
  }

  @Test(arguments: [
    (URLSession.AuthChallengeDisposition.useCredential, "data use someone"),
    (.performDefaultHandling, "data default"), (.rejectProtectionSpace, "data reject"),
  ])
  func theSenderHearsTheDelegatesAnswer(_ disposition: URLSession.AuthChallengeDisposition, _ heard: String)
    async throws
  {
    let script = try ScriptedProtocol.script { one in
      one.client?.urlProtocol(one, didReceive: Self.challenge(one))
    }
    let delegate = RecordingDelegate(credential: { _ in
      (disposition, URLCredential(user: "someone", password: "word", persistence: .none))
    })
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events == ["challenge", "response 200", heard, "metrics 1", "end"])
  }

  @Test func withoutADelegateAChallengeIsHandledByDefault() async throws {
    let script = try ScriptedProtocol.script { one in
      one.client?.urlProtocol(one, didReceive: Self.challenge(one))
    }
    let (data, _) = try await script.session().data(from: script.url)
    #expect(String(decoding: data, as: UTF8.self) == "default")
  }

  @Test func aCancelledChallengeCancelsTheTask() async throws {
    let script = try ScriptedProtocol.script { one in
      one.client?.urlProtocol(one, didReceive: Self.challenge(one))
    }
    let delegate = RecordingDelegate(credential: { _ in (.cancelAuthenticationChallenge, nil) })
    script.session(delegate).dataTask(with: script.url).resume()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .cancelled)
  }

  @Test(arguments: [true, false]) func aChallengeMayBeWithdrawn(_ isCancelled: Bool) async throws {
    let open = Mutex<URLAuthenticationChallenge?>(nil)
    let script = try ScriptedProtocol.script { one in
      let challenge = Self.challenge(one)
      open.withLock { $0 = challenge }
      one.client?.urlProtocol(one, didReceive: challenge)
    }
    // The delegate never answers the challenge.
    let delegate = RecordingDelegate(credential: { _ in nil }, heard: { script.note($0) })
    script.session(delegate).dataTask(with: script.url).resume()
    await script.wait(for: "challenge")
    let one = try #require(script.made.first)
    let challenge = try #require(open.withLock { $0 })
    if isCancelled { one.client?.urlProtocol(one, didCancel: challenge) }
    one.respond()
    one.finish()
    await delegate.wait()
    #expect(delegate.events == ["challenge", "response 200", "metrics 1", "end"])
  }

  // MARK: - The cache

  @Test func aResponseIsStoredIfTheProtocolAllows() async throws {
    let given = Mutex<[String?]>([])
    let script = try ScriptedProtocol.script { one in
      given.withLock { $0.append(one.cachedResponse.map { String(decoding: $0.data, as: UTF8.self) }) }
      if let cached = one.cachedResponse {
        one.client?.urlProtocol(one, cachedResponseIsValid: cached)
      } else {
        one.respond(policy: .allowed)
        one.load("con")
        one.load("tent")
      }
      one.finish()
    }
    let configuration = script.configuration()
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    configuration.urlCache = cache
    let delegate = RecordingDelegate()
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    session.dataTask(with: script.url).resume()
    await delegate.wait()
    #expect(delegate.events == ["response 200", "data con", "data tent", "cache content", "metrics 1", "end"])
    let stored = try #require(cache.cachedResponse(for: URLRequest(url: script.url)))
    #expect(String(decoding: stored.data, as: UTF8.self) == "content")
    let (data, response) = try await session.data(from: script.url)
    #expect(String(decoding: data, as: UTF8.self) == "content")
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(given.withLock { $0 } == [nil, "content"])
    session.invalidateAndCancel()
  }

  @Test func aResponseIsNotStoredIfTheProtocolForbids() async throws {
    let script = try ScriptedProtocol.script {
      $0.respond(policy: .notAllowed)
      $0.load("content")
      $0.finish()
    }
    let configuration = script.configuration()
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    configuration.urlCache = cache
    _ = try await URLSession(configuration: configuration).data(from: script.url)
    #expect(cache.cachedResponse(for: URLRequest(url: script.url)) == nil)
  }

  // MARK: - Other kinds of tasks

  /// A protocol answers requests, and cannot hold a conversation: it is not asked about these tasks.
  @Test(arguments: [0, 1]) func webSocketAndStreamTasksAreNotAsked(index: Int) async throws {
    let script = try ScriptedProtocol.script { one in one.respond() }
    let delegate = RecordingDelegate()
    let session = script.session(delegate)
    let url = try #require(URL(string: "ws://127.0.0.1:1/"))
    let task: URLSessionTask =
      index == 0 ? session.webSocketTask(with: url) : session.streamTask(withHostName: "127.0.0.1", port: 1)
    task.resume()
    await delegate.wait()
    #expect((delegate.error as? URLError)?.code == .cannotConnectToHost)
    #expect(script.made.isEmpty)
    session.invalidateAndCancel()
  }
}
