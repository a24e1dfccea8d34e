import AFNetworking
import LarkspurTestServer
import TestKit
import Testing

/// Tests the blocks that replace delegate methods.
@Suite struct ManagerBlockTests {
  let fixture: ManagerFixture
  let journal = Journal()
  var manager: AFHTTPSessionManager { fixture.manager }

  init() throws {
    fixture = try ManagerFixture()
    fixture.manager.responseSerializer = AFHTTPResponseSerializer()
  }

  private func load(_ request: URLRequest) async -> BlockResult {
    await outcome { manager.dataTask(with: request, completionHandler: $0).resume() }
  }

  @Test func redirections() async throws {
    let request = try fixture.request("/elsewhere")
    let task = manager.dataTask(with: request) { [journal] _, _, error in journal.note(error == nil ? "end" : "error") }
    // A block also applies to tasks created before it was set.
    manager.setTaskWillPerformHTTPRedirectionBlock { [journal] _, _, response, request in
      journal.note("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(request.url?.path ?? "")")
      return request
    }
    task.resume()
    await journal.wait(for: "end")
    #expect(journal.lines == ["302 /get", "end"])
    manager.setTaskWillPerformHTTPRedirectionBlock { _, _, _, _ in nil }
    let stopped = await load(request)
    #expect((stopped.response as? HTTPURLResponse)?.statusCode == 302)
    manager.setTaskWillPerformHTTPRedirectionBlock(nil)
    #expect((await load(request).response as? HTTPURLResponse)?.statusCode == 200)
  }

  private final class OwnManager: AFHTTPSessionManager, @unchecked Sendable {}

  /// An upload resource of another origin needs a block that agrees. A manager without one, also of a subclass that gets
  /// every call, follows redirections only.
  @Test(arguments: [true, false], [true, false]) func anUploadResourceOfAnotherOrigin(isOwn: Bool, agrees: Bool)
    async throws
  {
    let other = try TestServer()
    fixture.server.enqueue([.expectHead, .announceUpload(at: other.url("/account/42")), .expectBody, .close])
    let directory = try TemporaryDirectory()
    let file = directory.file("body")
    try Data("0123456789".utf8).write(to: file)
    let manager = isOwn ? OwnManager(sessionConfiguration: .ephemeral) : fixture.manager
    if agrees {
      manager.setTaskWillPerformHTTPRedirectionBlock { [journal] _, _, response, request in
        journal.note("\((response as? HTTPURLResponse)?.statusCode ?? 0) \(request.url?.path ?? "")")
        return request
      }
    }
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    let upload = request
    let result = await outcome {
      manager.uploadTask(with: upload, fromFile: file, progress: nil, completionHandler: $0).resume()
    }
    #expect(result.error?.code == (agrees ? NSURLErrorBadServerResponse : NSURLErrorNetworkConnectionLost))
    #expect(journal.lines == (agrees ? ["104 /account/42"] : []))
    #expect(other.requests.map(\.method) == (agrees ? ["HEAD"] : []))
    if isOwn { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
  }

  @Test func aDataTasksContent() async throws {
    manager.setDataTaskDidReceiveResponseBlock { [journal] _, _, response in
      journal.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
      return .allow
    }
    manager.setDataTaskDidReceiveDataBlock { [journal] _, _, data in journal.note("data \(data.count)") }
    manager.setTaskDidFinishCollectingMetricsBlock { [journal] _, _, metrics in
      journal.note("metrics \(metrics?.transactionMetrics.count ?? 0)")
    }
    manager.setTaskDidCompleteBlock { [journal] _, _, error in journal.note(error == nil ? "complete" : "failed") }
    let outcome = await load(try fixture.request("/bytes/300000"))
    #expect((outcome.object as? Data)?.count == 300_000)
    let lines = journal.lines
    #expect(lines.first == "response 200" && lines.suffix(2) == ["metrics 1", "complete"])
    let counts = lines.filter { $0.hasPrefix("data") }.compactMap { Int($0.dropFirst(5)) }
    #expect(counts.count > 1 && counts.reduce(0, +) == 300_000)
  }

  @Test func aResponseMayBeRefused() async throws {
    manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .cancel }
    #expect(await load(try fixture.request("/get")).error?.code == NSURLErrorCancelled)
  }

  /// If a data task becomes a download, its completion handler becomes the download's, and the manager's block chooses
  /// the destination.
  @Test func aDataTaskMayBecomeADownload() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("loaded")
    manager.setDataTaskDidReceiveResponseBlock { _, _, _ in .becomeDownload }
    manager.setDataTaskDidBecomeDownloadTaskBlock { [journal, manager] _, old, new in
      journal.note("\(old === new) \(manager.downloadTasks == [new]) \(manager.dataTasks.isEmpty)")
    }
    manager.setDownloadTaskDidFinishDownloadingBlock { _, _, _ in file }
    manager.setDownloadTaskDidWriteDataBlock { [journal] _, _, _, total, expected in
      if total == expected { journal.note("written \(total)") }
    }
    let outcome = await load(try fixture.request("/bytes/5000"))
    #expect(outcome.object as? URL == file)
    #expect(journal.lines == ["false true true", "written 5000"])
    #expect(manager.tasks.isEmpty)
  }

  @Test func theBodysWay() async throws {
    manager.setTaskDidSendBodyDataBlock { [journal] _, _, _, total, expected in journal.note("\(total) \(expected)") }
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    request.httpBody = Data("0123456789".utf8)
    _ = await load(request)
    #expect(journal.lines.last == "10 10")
  }

  /// The expected length of a streamed body comes from the `Content-Length` field.
  @Test func theLengthOfAStream() async throws {
    manager.setTaskDidSendBodyDataBlock { [journal] _, _, _, total, expected in journal.note("\(total) \(expected)") }
    _ = await outcome {
      manager.post(
        "post", parameters: nil, constructingBodyWith: { $0.appendPart(withForm: Data("x".utf8), name: "y") },
        success: $0, failure: $1)
    }
    let last = try #require(journal.lines.last?.split(separator: " "))
    #expect(last.count == 2 && last[0] == last[1])
  }

  @Test func streamsThatAreNeededAgain() async throws {
    fixture.server.route("POST", "/elsewhere") { _ in .redirect(to: "/post", status: 307) }
    var request = try fixture.request("/elsewhere")
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("first".utf8))
    let streamed = request
    manager.setTaskNeedNewBodyStreamBlock { [journal] _, _ in
      journal.note("stream")
      return InputStream(data: Data("second".utf8))
    }
    let outcome = await outcome { manager.uploadTask(withStreamedRequest: streamed, completionHandler: $0).resume() }
    #expect(String(decoding: try #require(outcome.object as? Data), as: UTF8.self).contains("second"))
    // The block is asked for the request and for the redirected request.
    #expect(journal.lines == ["stream", "stream"])
  }

  /// A form can be sent again without a block for new body streams.
  @Test func formsAreSentAgain() async throws {
    fixture.server.route("POST", "/elsewhere") { _ in .redirect(to: "/post", status: 307) }
    let outcome = await outcome {
      manager.post(
        "elsewhere", parameters: ["key": "value"], constructingBodyWith: { _ in }, success: $0, failure: $1)
    }
    #expect(String(decoding: try #require(outcome.object as? Data), as: UTF8.self).contains("name=\\\"key\\\""))
  }

  @Test func whatIsCached() async throws {
    fixture.server.route("GET", "/cacheable") { _ in
      var response = TestServer.Response.text("content")
      response.fields["Cache-Control"] = "max-age=600"
      return response
    }
    manager.setDataTaskWillCacheResponseBlock { [journal] _, _, proposed in
      journal.note("cache \(proposed.data.count)")
      return proposed
    }
    let request = try fixture.request("/cacheable")
    _ = await load(request)
    _ = await load(request)
    #expect(journal.lines == ["cache 7"])
    #expect(fixture.server.requestsReceived == 1)
  }

  @Test func theEndOfASession() async throws {
    let session = manager.session
    manager.setSessionDidBecomeInvalidBlock { [journal] ended, error in
      journal.note("\(ended === session) \((error as? URLError)?.code == .cancelled)")
    }
    let observer = Notified(.AFURLSessionDidInvalidate, of: session) { [journal] _ in journal.note("notification") }
    manager.invalidateSessionCancelingTasks(false, resetSession: true)
    await journal.wait(for: "notification")
    #expect(journal.lines == ["true true", "notification"])
    withExtendedLifetime(observer) {}
  }

  @Test func eventsOfABackgroundSession() async {
    manager.setDidFinishEventsForBackgroundURLSessionBlock { [journal] _ in journal.note("\(MainQueue.isCurrent)") }
    manager.urlSessionDidFinishEvents(forBackgroundURLSession: manager.session)
    await journal.wait { !$0.isEmpty }
    #expect(journal.lines == ["true"])
  }

  /// The setters without `Block` in their names, which some importers of Objective-C produce.
  @Test func namesWithoutTheWordBlock() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("loaded")
    manager.setTaskWillPerformHTTPRedirection { [journal] _, _, _, request in
      journal.note("redirection")
      return request
    }
    manager.setDataTaskDidReceiveResponse { [journal] _, _, _ in
      journal.note("response")
      return .becomeDownload
    }
    manager.setDataTaskDidBecomeDownloadTask { [journal] _, _, _ in journal.note("download") }
    manager.setDownloadTaskDidFinishDownloading { _, _, _ in file }
    manager.setTaskDidFinishCollectingMetrics { [journal] _, _, _ in journal.note("metrics") }
    manager.setTaskDidComplete { [journal] _, _, _ in journal.note("complete") }
    manager.setSessionDidBecomeInvalid { [journal] _, _ in journal.note("invalid") }
    manager.setTaskNeedNewBodyStream(nil)
    manager.setTaskDidSendBodyData(nil)
    manager.setDataTaskDidReceiveData(nil)
    manager.setDataTaskWillCacheResponse(nil)
    manager.setDownloadTaskDidWriteData(nil)
    manager.setDownloadTaskDidResume(nil)
    manager.setSessionDidReceiveAuthenticationChallenge(nil)
    manager.setTaskDidReceiveAuthenticationChallenge(nil)
    manager.setDidFinishEventsForBackgroundURLSession(nil)
    let outcome = await load(try fixture.request("/elsewhere"))
    #expect(outcome.object as? URL == file)
    manager.invalidateSessionCancelingTasks(false, resetSession: true)
    await journal.wait(for: "invalid")
    #expect(
      journal.lines == ["redirection", "response", "download", "metrics", "complete", "invalid"])
  }
}
