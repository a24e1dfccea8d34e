import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import Testing

@Suite struct OperationManagerTests {
  typealias Outcome = Result<Any?, any Error>

  let server: TestServer
  let manager: AFHTTPRequestOperationManager

  init() throws {
    server = try TestServer()
    manager = AFHTTPRequestOperationManager(baseURL: URL(string: server.url("/anything/v1")))
    manager.completionQueue = OperationKit.queue
  }

  @Test func aNewOne() throws {
    #expect(manager.baseURL?.absoluteString == server.url("/anything/v1/"))
    #expect(manager.responseSerializer is AFJSONResponseSerializer && manager.shouldUseCredentialStorage)
    #expect(manager.securityPolicy.sslPinningMode == .none && manager.credential == nil)
    #expect(manager.reachabilityManager === AFNetworkReachabilityManager.shared())
    #expect(AFHTTPRequestOperationManager.manager().baseURL == nil && AFHTTPRequestOperationManager().baseURL == nil)
    let bare = AFHTTPRequestOperationManager(baseURL: URL(string: "http://a.example"))
    #expect(bare.baseURL?.absoluteString == "http://a.example" && bare.description.contains("a.example"))
  }

  /// The server's echo of the request that an operation sent.
  private func echo(
    _ run: (_ success: @escaping (AFHTTPRequestOperation, Any?) -> Void) -> AFHTTPRequestOperation?
  ) async throws -> [String: Any] {
    let results = Results<Any?>()
    let operation = run { results.add($1) }
    #expect(operation != nil)
    return try #require(try await results.next() as? [String: Any])
  }

  private func fail(_ operation: AFHTTPRequestOperation?, _ error: any Error) { Issue.record(error) }

  @Test func theVerbs() async throws {
    let get = try await echo { manager.get("a", parameters: ["b": "c d"], success: $0, failure: fail) }
    #expect(get["method"] as? String == "GET" && get["target"] as? String == "/anything/v1/a?b=c%20d")
    let post = try await echo { manager.post("/anything/x", parameters: ["b": 1], success: $0, failure: fail) }
    #expect(post["method"] as? String == "POST" && (post["form"] as? [String: String]) == ["b": "1"])
    #expect(post["target"] as? String == "/anything/x")
    let put = try await echo { manager.put("a", parameters: nil, success: $0, failure: fail) }
    #expect(put["method"] as? String == "PUT")
    let patch = try await echo { manager.patch("a", parameters: nil, success: $0, failure: fail) }
    #expect(patch["method"] as? String == "PATCH")
    let delete = try await echo { manager.delete("a", parameters: ["b": "c"], success: $0, failure: fail) }
    #expect(delete["method"] as? String == "DELETE" && delete["target"] as? String == "/anything/v1/a?b=c")
    let results = Results<Int>()
    manager.head("a", parameters: nil, success: { results.add($0.response.statusCode) }, failure: fail)
    #expect(try await results.next() == 200 && server.requests.last?.method == "HEAD")
  }

  @Test func formsInParts() async throws {
    let echo = try await echo {
      manager.post(
        "a", parameters: ["name": "value"],
        constructingBodyWith: { form in
          form.appendPart(withFileData: Data("bytes".utf8), name: "file", fileName: "a.txt", mimeType: "text/plain")
        }, success: $0, failure: fail)
    }
    let body = try #require(server.requests.last?.bodyText)
    #expect(body.contains("name=\"name\"\r\n\r\nvalue\r\n") && body.contains("filename=\"a.txt\""))
    #expect(body.contains("\r\n\r\nbytes\r\n") && echo["method"] as? String == "POST")
    #expect(server.requests.last?.fields["content-length"] == String(body.utf8.count))
  }

  @Test func failures() async throws {
    let results = Results<(Bool, Int)>()
    manager.get(server.url("/status/500"), success: { _, _ in Issue.record("500") }) { operation, error in
      results.add((operation?.response.statusCode == 500, (error as NSError).code))
    }
    #expect(try await results.next() == (true, NSURLErrorBadServerResponse))
    manager.get(server.url("/text"), success: { _, _ in Issue.record("no JSON") }) { operation, error in
      results.add((operation?.response.statusCode == 404, (error as NSError).code))
    }
    #expect(try await results.next().0)
  }

  /// CVE-2025-27152: an absolute URL of another server gets no credentials.
  @Test func credentialsAreNotSentToAnotherServer() async throws {
    let (other, results) = (try TestServer(), Results<Bool>())
    let manager = AFHTTPRequestOperationManager(baseURL: URL(string: server.url()))
    manager.completionQueue = OperationKit.queue
    manager.requestSerializer.setAuthorizationHeaderFieldWithUsername("user", password: "password")
    for url in [other.url("/get"), "get"] {
      manager.get(url, success: { _, _ in results.add(true) }, failure: { _, _ in results.add(false) })
      #expect(try await results.next())
    }
    #expect(other.requests.map { $0.fields["authorization"] == nil } == [true])
    #expect(server.requests.map { $0.fields["authorization"] == nil } == [false])
  }

  @Test func aTimeIsUp() async throws {
    manager.requestSerializer.timeoutInterval = 0.1
    for method in ["GET", "HEAD", "POST"] {
      let results = Results<Int>()
      let failure = { (_: AFHTTPRequestOperation?, error: any Error) in results.add((error as NSError).code) }
      switch method {
      case "GET": manager.get(server.url("/hang"), failure: failure)
      case "HEAD": manager.head(server.url("/hang"), failure: failure)
      default: manager.post(server.url("/hang"), failure: failure)
      }
      #expect(try await results.next() == NSURLErrorTimedOut)
    }
  }

  @Test func aFailedSerializerIsReportedWithoutAnOperation() async throws {
    manager.requestSerializer = AFJSONRequestSerializer()
    let results = Results<Bool>()
    let operation = manager.post("a", parameters: ["date": Date()]) { operation, _ in
      Issue.record("\(operation)")
    } failure: { (operation: AFHTTPRequestOperation?, _: any Error) in
      results.add(operation == nil)
    }
    #expect(operation == nil)
    #expect(try await results.next())
    // A failure block whose operation parameter is not optional gets an operation that has not run.
    manager.post("a", parameters: ["date": Date()]) { _, _ in
    } failure: { (operation: AFHTTPRequestOperation, _: any Error) in
      results.add(operation.isReady)
    }
    #expect(try await results.next())
    #expect(server.requestsReceived == 0)
  }

  @Test func operationsHaveTheManagersSettings() throws {
    let group = DispatchGroup()
    manager.completionGroup = group
    manager.shouldUseCredentialStorage = false
    manager.credential = URLCredential(user: "a", password: "b", persistence: .none)
    manager.securityPolicy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [])
    let operation = manager.httpRequestOperation(
      with: try OperationKit.request(server.url("/get")), success: nil, failure: nil)
    #expect(operation.completionGroup === group && operation.completionQueue === OperationKit.queue)
    #expect(!operation.shouldUseCredentialStorage && operation.credential === manager.credential)
    #expect(operation.securityPolicy === manager.securityPolicy && operation.isReady)
    #expect(operation.responseSerializer === manager.responseSerializer)
  }

  final class Counting: AFHTTPRequestOperationManager, @unchecked Sendable {
    let count = Mutex(0)

    override func httpRequestOperation(
      with request: URLRequest, success: ((AFHTTPRequestOperation, Any?) -> Void)?,
      failure: ((AFHTTPRequestOperation, any Error) -> Void)?
    ) -> AFHTTPRequestOperation {
      count.withLock { $0 += 1 }
      return super.httpRequestOperation(with: request, success: success, failure: failure)
    }
  }

  @Test func aSubclassMakesTheOperations() async throws {
    let manager = Counting(baseURL: URL(string: server.url()))
    manager.completionQueue = OperationKit.queue
    _ = try await echo { manager.GET("get", parameters: nil, success: $0, failure: fail) }
    #expect(manager.count.withLock { $0 } == 1)
  }

  @Test func aPausedOneHoldsItsPlace() async throws {
    manager.operationQueue.maxConcurrentOperationCount = 1
    manager.operationQueue.isSuspended = true
    let results = Results<String>()
    let first = try #require(manager.get("1", success: { operation, _ in results.add("first") }, failure: fail))
    manager.get("2", success: { _, _ in results.add("second") }, failure: fail)
    #expect(manager.operationQueue.operationCount == 2)
    first.pause()
    manager.operationQueue.isSuspended = false
    #expect(try await results.next() == "second")
    first.resume()
    #expect(try await results.next() == "first")
  }

  @Test func archivesAndCopies() throws {
    manager.requestSerializer.setValue("x", forHTTPHeaderField: "X-Own")
    let data = try NSKeyedArchiver.archivedData(withRootObject: manager, requiringSecureCoding: true)
    let read = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: AFHTTPRequestOperationManager.self, from: data))
    #expect(read.baseURL == manager.baseURL && read.responseSerializer is AFJSONResponseSerializer)
    #expect(read.requestSerializer.value(forHTTPHeaderField: "X-Own") == "x")
    let copy = try #require(manager.copy() as? AFHTTPRequestOperationManager)
    #expect(copy.baseURL == manager.baseURL && copy.requestSerializer !== manager.requestSerializer)
    #expect(copy.requestSerializer.value(forHTTPHeaderField: "X-Own") == "x")
    #expect(copy.operationQueue !== manager.operationQueue)
  }
}
