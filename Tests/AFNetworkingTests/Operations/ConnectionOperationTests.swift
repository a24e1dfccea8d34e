import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@Suite struct ConnectionOperationTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func operation(_ path: String) throws -> AFURLConnectionOperation {
    try OperationKit.operation(AFURLConnectionOperation.self, server.url(path))
  }

  @Test func aNewOne() throws {
    let operation = try operation("/get")
    #expect(operation.isReady && !operation.isExecuting && !operation.isFinished && !operation.isPaused())
    #expect(operation.isAsynchronous && operation.shouldUseCredentialStorage && operation.credential == nil)
    #expect(operation.response == nil && operation.error == nil && operation.responseData == nil)
    #expect(operation.responseString == nil && operation.userInfo.isEmpty && operation.inputStream == nil)
    #expect(operation.runLoopModes == [RunLoop.Mode.common] && operation.securityPolicy.sslPinningMode == .none)
    #expect(operation.description.contains("ready"))
  }

  @Test func itLoads() async throws {
    let operation = try operation("/bytes/100000")
    await operation.run()
    #expect(operation.isFinished && !operation.isExecuting && !operation.isReady && operation.error == nil)
    #expect((operation.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(operation.responseData == Data(TestServer.content(0..<100_000)))
    #expect(operation.outputStream == nil)
    // A finished operation does not start again.
    operation.start()
    operation.pause()
    operation.cancel()
    #expect(operation.isFinished && !operation.isPaused() && !operation.isCancelled)
    #expect(server.requestsReceived == 1)
  }

  @Test func aQueueRunsItAndItsDependents() async throws {
    let (first, second) = (try operation("/get?1"), try operation("/get?2"))
    second.addDependency(first)
    second.queuePriority = .veryHigh
    OperationKit.add([second, first])
    await second.isOver()
    #expect(first.isFinished && second.isFinished)
    #expect(server.requests.map(\.target) == ["/get?1", "/get?2"])
  }

  @Test func dependentsMayGoFirst() async throws {
    let first = try operation("/hang")
    OperationKit.add([first])
    try await server.waitForRequests(1)
    weak var gone: Operation?
    do {
      let second = try operation("/get")
      gone = second
      second.addDependency(first)
      second.cancel()
      OperationKit.add([second])
    }
    await Wait.until("the operation is released") { gone == nil }
    first.cancel()
    await first.isOver()
    #expect(server.requestsReceived == 1)
  }

  /// A finished dependent is removed from its dependency at once: Foundation holds a lock while it visits the
  /// dependents of an operation, and the last reference to one of them must not be released inside.
  @Test(.timeLimit(.minutes(1))) func aFinishedDependentIsRemovedAtOnce() async throws {
    let first = try operation("/hang")
    let second = try operation("/get")
    second.addDependency(first)
    let batch = AFURLConnectionOperation.batch(ofRequestOperations: [first]).compactMap { $0 as? Operation }
    let last = try #require(batch.last)
    #expect(try OperationKit.dependents(of: first) == 2)
    for operation in [second, last] {
      operation.cancel()
      OperationKit.add([operation])
      await Wait.until("the operation has finished") { operation.isFinished }
    }
    try await Wait.until("no operation depends on the first") { try OperationKit.dependents(of: first) == 0 }
    #expect(second.dependencies == [first])
    first.cancel()
    await first.run()
    #expect(server.requestsReceived == 0)
  }

  /// Replacing a block releases the owner that it captured. The owner's `deinit` can read and cancel the operation.
  @Test func ownersGoWithTheirBlocks() async throws {
    let operation = try operation("/get")
    let gone = Event()
    func owner() -> DeinitObserver {
      DeinitObserver { [weak operation] in
        operation?.cancel()
        _ = operation?.isFinished
        gone.fire()
      }
    }
    for isLast in [false, true] {
      operation.completionBlock = { [kept = owner()] in withExtendedLifetime(kept) {} }
      operation.setUploadProgressBlock { [kept = owner()] _, _, _ in withExtendedLifetime(kept) {} }
      operation.setDownloadProgressBlock { [kept = owner()] _, _, _ in withExtendedLifetime(kept) {} }
      operation.setWillSendRequestForAuthenticationChallengeBlock { [kept = owner()] _, _ in
        withExtendedLifetime(kept) {}
      }
      operation.setRedirectResponseBlock { [kept = owner()] _, request, _ in withExtendedLifetime(kept) { request } }
      operation.setCacheResponseBlock { [kept = owner()] _, response in withExtendedLifetime(kept) { response } }
      if isLast {
        operation.setUploadProgressBlock(nil)
        operation.setDownloadProgressBlock(nil)
      }
    }
    await operation.run()
    #expect(operation.isFinished)
    try await gone.wait(for: 12)
  }

  @Test func startedTooEarlyItWaits() async throws {
    let (first, second) = (try operation("/get"), try operation("/get"))
    second.addDependency(first)
    second.start()
    #expect(!second.isExecuting)
    await first.run()
    // `run` waits by an operation that depends on `first`, too, and that may become ready before `second`.
    await Wait.until("the second is ready") { second.isReady }
    await second.run()
    #expect(server.requestsReceived == 2)
  }

  /// A program may call `start` on an operation that a queue also starts.
  @Test func startedByHandToo() async throws {
    let queue = OperationQueue()
    for _ in 0..<50 {
      let operation = try operation("/get")
      queue.addOperation(operation)
      operation.start()
      await operation.isOver()
      #expect(operation.error == nil)
    }
    #expect(server.requestsReceived == 50)
  }

  @Test func failuresAreErrors() async throws {
    let operation = try operation("/close")
    await operation.run()
    #expect(operation.isFinished && operation.error is URLError && operation.responseData == nil)
  }

  @Test(arguments: [
    ("text/plain; charset=Shift_JIS", String.Encoding.shiftJIS), ("text/plain; charset=\"UTF-8\"", .utf8),
    ("text/plain; charset=invalid", .utf8), ("text/plain", .utf8), ("text/plain; charset=ISO-8859-1", .isoLatin1),
  ])
  func encodings(type: String, encoding: String.Encoding) async throws {
    let text = encoding == .isoLatin1 ? "\u{e4}" : encoding == .shiftJIS ? "\u{3042}" : "\u{20ac}"
    let bytes = Array(try #require(text.data(using: encoding)))
    server.route("GET", "/text") { _ in .init(fields: ["Content-Type": type], body: .bytes(bytes)) }
    let operation = try operation("/text")
    await operation.run()
    #expect(operation.responseStringEncoding == encoding.rawValue)
    #expect(operation.responseString == text)
  }

  // MARK: - Ends

  @Test func aCancelledOneFails() async throws {
    let operation = try operation("/hang")
    let queue = OperationQueue()
    queue.addOperation(operation)
    try await server.waitForRequests(1)
    #expect(operation.isExecuting)
    operation.cancel()
    await operation.isOver()
    #expect(operation.isCancelled && operation.isFinished)
    let error = operation.error as NSError?
    #expect(error?.domain == NSURLErrorDomain && error?.code == NSURLErrorCancelled)
    #expect(error?.userInfo[NSURLErrorFailingURLErrorKey] as? URL == operation.request.url)
  }

  @Test func oneThatIsCancelledBeforeItsStartFailsThen() async throws {
    let operation = try operation("/get")
    operation.cancel()
    #expect(operation.isCancelled && !operation.isFinished)
    await operation.run()
    #expect((operation.error as? URLError)?.code == .cancelled && server.requestsReceived == 0)
  }

  @Test(arguments: [true, false]) func aQueueLetsCancelledOnesGo(isPaused: Bool) async throws {
    let queue = OperationQueue()
    queue.isSuspended = true
    let operation = try operation("/get")
    queue.addOperation(operation)
    if isPaused { operation.pause() }
    operation.cancel()
    queue.isSuspended = false
    await operation.isOver()
    #expect((operation.error as? URLError)?.code == .cancelled && server.requestsReceived == 0)
  }

  @Test func theCompletionBlockIsCalledOnce() async throws {
    let operation = try operation("/get")
    let results = Results<Bool>()
    operation.completionBlock = { [weak operation] in results.add(operation?.isFinished ?? false) }
    #expect(operation.completionBlock != nil)
    operation.start()
    #expect(try await results.next())
    #expect(operation.completionBlock == nil)
  }

  final class Noted: AFURLConnectionOperation, @unchecked Sendable {
    static let gone = Results<Bool>()
    deinit { Self.gone.add(true) }
  }

  @Test func itGoesAwayWithItsEnd() async throws {
    do {
      let operation = try OperationKit.operation(Noted.self, server.url("/get"))
      // The block keeps the operation alive until it has been called.
      operation.completionBlock = { _ = operation.request }
      await operation.run()
    }
    #expect(try await Noted.gone.next())
  }

  // MARK: - Streams

  @Test func anInputStreamIsTheBody() async throws {
    var request = try OperationKit.request(server.url("/post"))
    request.httpMethod = "POST"
    let operation = AFURLConnectionOperation(request: request)
    operation.inputStream = InputStream(data: Data("from a stream".utf8))
    #expect(operation.inputStream != nil)
    await operation.run()
    #expect(server.requests.first?.bodyText == "from a stream")
  }

  @Test func anOutputStreamTakesTheContent() async throws {
    let file = try OperationKit.directory().appending(path: "content")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let operation = try operation("/bytes/300000")
    operation.outputStream = OutputStream(toFileAtPath: file.path, append: false)
    await operation.run()
    #expect(operation.error == nil && operation.responseData == nil)
    #expect(operation.outputStream.streamStatus == .closed)
    #expect(try Data(contentsOf: file) == Data(TestServer.content(0..<300_000)))
  }

  @Test func aStreamToMemoryIsTheData() async throws {
    let operation = try operation("/bytes/1000")
    let stream: OutputStream = operation.outputStream
    await operation.run()
    #expect(operation.responseData == Data(TestServer.content(0..<1000)))
    #expect(stream.streamStatus == .closed && operation.outputStream == nil)
  }

  @Test func aStreamThatTakesNothingFailsTheOperation() async throws {
    let operation = try operation("/bytes/1000")
    operation.outputStream = OutputStream(toFileAtPath: "/nowhere/at/all", append: false)
    await operation.run()
    #expect(operation.isFinished && operation.error != nil)
    #expect((operation.error as? URLError)?.code != .cancelled)
  }

  /// An output stream that the program has closed fails the operation. The stream has no error of its own then, so it
  /// is not asked for one.
  @Test func aStreamThatHasBeenClosedFailsTheOperation() async throws {
    let directory = try FormDirectory()
    let operation = try operation("/bytes/1000")
    let stream = try #require(OutputStream(toFileAtPath: directory.url.appending(path: "out").path, append: false))
    stream.open()
    stream.close()
    operation.outputStream = stream
    await operation.run()
    #expect((operation.error as? URLError)?.code == .cannotWriteToFile)
  }

  // MARK: - Blocks

  @Test func progressIsReported() async throws {
    let results = Results<(UInt, Int64, Int64)>()
    var request = try OperationKit.request(server.url("/post"))
    request.httpMethod = "POST"
    request.httpBody = Data(TestServer.content(0..<200_000))
    let upload = AFURLConnectionOperation(request: request)
    upload.completionQueue = OperationKit.queue
    upload.setUploadProgressBlock { results.add(($0, $1, $2)) }
    await upload.run()
    var sum: Int64 = 0
    while sum < 200_000 {
      let (bytes, total, expected) = try await results.next()
      sum += Int64(bytes)
      #expect(total == sum && expected == 200_000)
    }
    let download = try operation("/bytes/200000")
    download.setDownloadProgressBlock { results.add(($0, $1, $2)) }
    await download.run()
    sum = 0
    while sum < 200_000 {
      let (bytes, total, expected) = try await results.next()
      sum += Int64(bytes)
      #expect(total == sum && expected == 200_000)
    }
  }

  @Test func redirectionsAreAsked() async throws {
    let count = Mutex(0)
    let operation = try operation("/redirect/5")
    operation.setRedirectResponseBlock { connection, request, response in
      count.withLock { $0 += 1 }
      #expect((response as? HTTPURLResponse)?.statusCode == 302 && connection.originalRequest.url != request.url)
      return request
    }
    await operation.run()
    #expect(count.withLock { $0 } == 5 && operation.response.url?.path == "/get")
  }

  @Test func aRefusedRedirectionIsTheResponse() async throws {
    let operation = try operation("/redirect/1")
    operation.setRedirectResponseBlock { _, _, _ in nil }
    await operation.run()
    #expect((operation.response as? HTTPURLResponse)?.statusCode == 302 && operation.error == nil)
  }

  @Test func theCacheBlockIsAsked() async throws {
    server.route("GET", "/cached") { _ in
      .init(fields: ["Cache-Control": "max-age=1000", "Content-Type": "text/plain"], body: .text("kept?"))
    }
    let asked = Mutex<[String]>([])
    let operation = try operation("/cached")
    operation.setCacheResponseBlock { _, proposed in
      asked.withLock { $0.append(String(decoding: proposed.data, as: UTF8.self)) }
      return nil
    }
    await operation.run()
    #expect(asked.withLock { $0 } == ["kept?"])
    let again = try self.operation("/cached")
    await again.run()
    #expect(server.requestsReceived == 2)
  }

  /// Without a cache block, a response without freshness information is not stored, as without a delegate.
  @Test(arguments: [false, true]) func whatIsStored(hasBlock: Bool) async throws {
    server.route("GET", "/plain") { _ in .text("plain") }
    let operation = try operation("/plain")
    if hasBlock { operation.setCacheResponseBlock { _, proposed in proposed } }
    await operation.run()
    #expect((URLCache.shared.cachedResponse(for: operation.request) != nil) == hasBlock)
    URLCache.shared.removeCachedResponse(for: operation.request)
  }

  // MARK: - Challenges

  private func guarded() {
    server.route("GET", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return .init(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""], body: .text("who?"))
      }
      return .text("come in")
    }
  }

  @Test func theCredentialAnswersOnce() async throws {
    guarded()
    let operation = try operation("/secret")
    operation.credential = URLCredential(user: "user", password: "pass", persistence: .none)
    await operation.run()
    #expect(operation.responseString == "come in")
    let wrong = try self.operation("/secret")
    wrong.credential = URLCredential(user: "user", password: "word", persistence: .none)
    await wrong.run()
    #expect((wrong.response as? HTTPURLResponse)?.statusCode == 401)
    #expect(server.requestsReceived == 4)
  }

  /// A credential is not sent to another origin after a redirection.
  @Test func theCredentialIsForItsOriginAlone() async throws {
    let other = try TestServer()
    other.route("GET", "/secret") { _ in .init(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""]) }
    server.route("GET", "/moved") { _ in .init(status: 307, fields: ["Location": other.url("/secret")]) }
    let operation = try operation("/moved")
    operation.credential = URLCredential(user: "user", password: "pass", persistence: .none)
    await operation.run()
    #expect((operation.response as? HTTPURLResponse)?.statusCode == 401)
    #expect(other.requests.allSatisfy { $0.fields["Authorization"] == nil } && other.requestsReceived == 1)
  }

  /// A credential of one operation is not used by operations without it.
  @Test func credentialsAreNotShared() async throws {
    guarded()
    let operation = try operation("/secret")
    operation.credential = URLCredential(user: "user", password: "pass", persistence: .forSession)
    operation.shouldUseCredentialStorage = false
    await operation.run()
    let other = try self.operation("/secret")
    other.shouldUseCredentialStorage = false
    await other.run()
    #expect((other.response as? HTTPURLResponse)?.statusCode == 401)
  }

  @Test func theChallengeBlockAnswersBySender() async throws {
    guarded()
    let operation = try operation("/secret")
    operation.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in
      let credential = URLCredential(user: "user", password: "pass", persistence: .none)
      OperationKit.queue.async { challenge.sender?.use(credential, for: challenge) }
    }
    await operation.run()
    #expect(operation.responseString == "come in")
  }

  @Test func aChallengeThatIsLetGoOfIsCancelled() async throws {
    guarded()
    let operation = try operation("/secret")
    operation.setWillSendRequestForAuthenticationChallengeBlock { _, _ in }
    await operation.run()
    #expect((operation.error as? URLError)?.code == .userCancelledAuthentication)
    let second = try self.operation("/secret")
    second.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in challenge.sender?.cancel(challenge) }
    await second.run()
    #expect((second.error as? URLError)?.code == .userCancelledAuthentication)
    let third = try self.operation("/secret")
    third.setWillSendRequestForAuthenticationChallengeBlock { _, challenge in
      challenge.sender?.continueWithoutCredential(for: challenge)
    }
    await third.run()
    #expect(third.error == nil && (third.response as? HTTPURLResponse)?.statusCode == 401)
  }

  // MARK: - Notifications

  @Test func notificationsArePosted() async throws {
    let results = Results<String>()
    let operation = try operation("/get")
    let center = NotificationCenter.default
    let observers = [NSNotification.Name.AFNetworkingOperationDidStart, .AFNetworkingOperationDidFinish].map { name in
      center.addObserver(forName: name, object: operation, queue: nil) { results.add($0.name.rawValue) }
    }
    defer { observers.forEach(center.removeObserver) }
    await operation.run()
    #expect(try await results.next() == "com.alamofire.networking.operation.start")
    #expect(try await results.next() == "com.alamofire.networking.operation.finish")
    #expect(AFNetworkingOperationDidStartNotification == .AFNetworkingOperationDidStart)
    #expect(AFNetworkingOperationDidFinishNotification == .AFNetworkingOperationDidFinish)
  }

  // MARK: - Archives and copies

  private func archived<Kind: AFURLConnectionOperation>(_ operation: Kind) throws -> Kind {
    let data = try NSKeyedArchiver.archivedData(withRootObject: operation, requiringSecureCoding: true)
    return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: Kind.self, from: data))
  }

  @Test func archives() async throws {
    let operation = try operation("/get")
    let fresh = try archived(operation)
    #expect(operation.isPaused() && fresh.isReady && fresh.request == operation.request)
    operation.resume()
    await operation.run()
    let done = try archived(operation)
    #expect(done.isFinished && done.responseData == operation.responseData)
    #expect((done.response as? HTTPURLResponse)?.statusCode == 200)
    let failed = try self.operation("/close")
    await failed.run()
    let read = try archived(failed)
    #expect((read.error as NSError?)?.code == (failed.error as NSError?)?.code)
  }

  @Test func copies() async throws {
    let operation = try operation("/get")
    operation.completionBlock = {}
    await operation.run()
    let copy = try #require(operation.copy() as? AFURLConnectionOperation)
    #expect(copy.isReady && copy.request == operation.request && copy.completionBlock == nil && copy.response == nil)
    #expect(copy.completionQueue === OperationKit.queue)
    await copy.run()
    #expect(copy.error == nil && server.requestsReceived == 2)
  }
}
