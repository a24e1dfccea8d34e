import AFNetworking
import LarkspurTestServer
import Testing

/// Tests the invalidation and replacement of sessions, and archives, copies and subclasses of managers.
@Suite struct ManagerLifecycleTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws { fixture = try ManagerFixture() }

  @Test func whatANewManagerHas() {
    let manager = AFURLSessionManager()
    #expect(manager.responseSerializer is AFJSONResponseSerializer)
    #expect(manager.securityPolicy.sslPinningMode == .none && manager.securityPolicy.validatesDomainName)
    #expect(manager.reachabilityManager === AFNetworkReachabilityManager.shared())
    #expect(manager.completionQueue == nil && manager.completionGroup == nil && manager.tasks.isEmpty)
    #expect(manager.session.delegate === manager)
    #expect(!manager.attemptsToRecreateUploadTasksForBackgroundSessions)
    let other = AFHTTPSessionManager.manager()
    #expect(type(of: other.requestSerializer) == AFHTTPRequestSerializer.self)
    #expect(type(of: other.responseSerializer) == AFJSONResponseSerializer.self)
    #expect(!other.isEqual(manager) && other !== AFHTTPSessionManager.manager())
  }

  @Test func whatIsSetStays() {
    let manager = AFURLSessionManager()
    let (serializer, policy, reachability) = (
      AFImageResponseSerializer(), AFSecurityPolicy.default(), AFNetworkReachabilityManager(forDomain: "localhost")
    )
    manager.responseSerializer = serializer
    manager.securityPolicy = policy
    manager.reachabilityManager = reachability
    manager.attemptsToRecreateUploadTasksForBackgroundSessions = true
    #expect(manager.responseSerializer === serializer && manager.securityPolicy === policy)
    #expect(manager.reachabilityManager === reachability)
    #expect(manager.attemptsToRecreateUploadTasksForBackgroundSessions)
  }

  @Test func tasksByTheirKind() async throws {
    let request = try fixture.request("/get")
    let journal = Journal()
    let data = manager.dataTask(with: request) { _, _, _ in journal.note("data") }
    let upload = manager.uploadTask(with: request, from: nil) { _, _, _ in journal.note("upload") }
    let download = manager.downloadTask(with: request) { _, _, _ in journal.note("download") }
    #expect(manager.tasks == [data, upload, download])
    #expect(manager.dataTasks == [data] && manager.uploadTasks == [upload] && manager.downloadTasks == [download])
    for task in manager.tasks { task.resume() }
    await journal.wait { $0.count == 3 }
    #expect(manager.tasks.isEmpty)
  }

  /// A task that the program creates with the session itself is in the manager's lists.
  @Test func tasksOfTheSession() async throws {
    let task = manager.session.dataTask(with: try fixture.url("/get"))
    #expect(manager.tasks == [task])
    let journal = Journal()
    manager.setTaskDidCompleteBlock { _, _, _ in journal.note("end") }
    task.resume()
    await journal.wait(for: "end")
    #expect(manager.tasks.isEmpty)
  }

  /// An awaited load of the session itself leaves no task in the manager's lists.
  @Test func anAwaitedTaskOfTheSession() async throws {
    _ = try await manager.session.data(from: try fixture.url("/get"))
    #expect(manager.tasks.isEmpty)
  }

  // MARK: - Invalidation of a session

  @Test func cancellingAndGoingOn() async throws {
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    let session = manager.session
    let request = try fixture.request("/slow")
    let outcome = await outcome { receive in
      manager.dataTask(with: request, completionHandler: receive).resume()
      manager.invalidateSessionCancelingTasks(true, resetSession: true)
    }
    signal.fire()
    #expect(outcome.error?.code == NSURLErrorCancelled)
    #expect(manager.session !== session)
    let next = await AFNetworkingTests.outcome { manager.get("get", parameters: nil, success: $0, failure: $1) }
    #expect(next.error == nil)
  }

  /// Both sessions number their tasks from one, and a task of one does not get the other's completion handler.
  @Test func anOldSessionMayEndInItsTime() async throws {
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .respond(.json(["slow": true])), .close])
    let request = try fixture.request("/slow")
    async let slow = outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
    _ = try await fixture.server.waitForRequests(1)
    let journal = Journal()
    manager.setSessionDidBecomeInvalidBlock { _, _ in journal.note("invalid") }
    manager.invalidateSessionCancelingTasks(false, resetSession: true)
    let fast = await outcome { manager.get("get", parameters: nil, success: $0, failure: $1) }
    #expect(fast["target"] == "/get")
    signal.fire()
    let first = await slow
    #expect(first["slow"] != nil)
    await journal.wait(for: "invalid")
  }

  /// Tasks of an invalidated session fail as cancelled. In AFNetworking the session raises an exception, which ends the
  /// process.
  @Test func tasksAfterTheEnd() async throws {
    let request = try fixture.request("/get")
    for hasSession in [true, false] {
      let manager = AFHTTPSessionManager(baseURL: try fixture.url("/"), sessionConfiguration: .ephemeral)
      let before = hasSession ? manager.dataTask(with: request, completionHandler: nil) : nil
      manager.invalidateSessionCancelingTasks(true, resetSession: false)
      let outcome = await outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
      #expect(outcome.error?.code == NSURLErrorCancelled)
      let upload = await AFNetworkingTests.outcome {
        manager.uploadTask(with: request, from: Data(), completionHandler: $0).resume()
      }
      #expect(upload.error?.code == NSURLErrorCancelled)
      before?.resume()
    }
    #expect(fixture.server.requestsReceived == 0)
  }

  @available(*, deprecated)
  private func endAsBefore(_ manager: AFURLSessionManager, _ cancels: Bool) {
    manager.invalidateSessionCancelingTasks(cancels)
  }

  @available(*, deprecated)
  @Test func theEarlierWayToEnd() async throws {
    let session = manager.session
    endAsBefore(manager, false)
    #expect(manager.session === session)
    endAsBefore(manager, true)
    #expect(manager.session !== session)
  }

  // MARK: - Archives and copies

  /// A manager subclass as programs write it.
  private final class Client: AFHTTPSessionManager, @unchecked Sendable {
    static let shared = Client(baseURL: URL(string: "https://example.com/v1"))

    override func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      super.urlSession(session, task: task, didCompleteWithError: error)
      heard.note("end")
    }

    override func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      super.urlSession(session, dataTask: dataTask, didReceive: data)
      heard.note("data")
    }

    let heard = Journal()
  }

  /// A subclass can override the delegate methods, and gets every call.
  @Test func subclasses() async throws {
    #expect(Client.shared.baseURL?.absoluteString == "https://example.com/v1/")
    let client = Client(baseURL: try fixture.url("/"), sessionConfiguration: .ephemeral)
    defer { client.invalidateSessionCancelingTasks(true, resetSession: false) }
    let outcome = await outcome { client.get("get", parameters: nil, success: $0, failure: $1) }
    #expect(outcome.error == nil)
    await client.heard.wait(for: "end")
    #expect(client.heard.lines == ["data", "end"])
  }

  private func configured() -> AFHTTPSessionManager {
    let manager = AFHTTPSessionManager(
      baseURL: URL(string: "https://example.com/v1"),
      sessionConfiguration: .background(withIdentifier: "af-managers-archive"))
    manager.requestSerializer = AFJSONRequestSerializer()
    manager.requestSerializer.setValue("value", forHTTPHeaderField: "field")
    manager.responseSerializer = AFHTTPResponseSerializer()
    manager.responseSerializer.acceptableContentTypes = ["text/plain"]
    manager.securityPolicy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [])
    return manager
  }

  private func check(_ manager: AFHTTPSessionManager, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(manager.baseURL?.absoluteString == "https://example.com/v1/", sourceLocation: sourceLocation)
    #expect(
      manager.requestSerializer is AFJSONRequestSerializer
        && manager.requestSerializer.value(forHTTPHeaderField: "field") == "value", sourceLocation: sourceLocation)
    #expect(
      type(of: manager.responseSerializer) == AFHTTPResponseSerializer.self
        && manager.responseSerializer.acceptableContentTypes == ["text/plain"], sourceLocation: sourceLocation)
    #expect(manager.securityPolicy.sslPinningMode == .publicKey, sourceLocation: sourceLocation)
    #expect(manager.session.configuration.identifier == "af-managers-archive", sourceLocation: sourceLocation)
  }

  @Test func archives() throws {
    #expect(AFHTTPSessionManager.supportsSecureCoding && AFURLSessionManager.supportsSecureCoding)
    let data = try NSKeyedArchiver.archivedData(withRootObject: configured(), requiringSecureCoding: true)
    check(try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFHTTPSessionManager.self, from: data)))
    let plain = try NSKeyedArchiver.archivedData(withRootObject: AFURLSessionManager(), requiringSecureCoding: true)
    let manager = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFURLSessionManager.self, from: plain))
    #expect(manager.session.configuration.identifier == nil)
  }

  @Test func copies() throws {
    let manager = configured()
    let copy = try #require(manager.copy() as? AFHTTPSessionManager)
    check(copy)
    #expect(copy !== manager && copy.session !== manager.session)
    #expect(copy.requestSerializer !== manager.requestSerializer)
    #expect(copy.responseSerializer !== manager.responseSerializer)
    let client = try #require(Client.shared.copy() as? Client)
    #expect(client !== Client.shared && client.baseURL == Client.shared.baseURL)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 17
    let plain = try #require(AFURLSessionManager(sessionConfiguration: configuration).copy() as? AFURLSessionManager)
    #expect(plain.session.configuration.timeoutIntervalForRequest == 17)
  }

  @Test func descriptions() {
    let manager = AFHTTPSessionManager(baseURL: URL(string: "https://example.com/v1"))
    #expect(manager.description.hasPrefix("<AFHTTPSessionManager: 0x"))
    #expect(manager.description.contains(", baseURL: https://example.com/v1/, session: "))
    #expect(AFURLSessionManager().description.hasPrefix("<AFURLSessionManager: 0x"))
  }
}
