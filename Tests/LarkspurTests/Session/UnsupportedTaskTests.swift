import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests calls for which there is no implementation: every call fails, and none waits forever.
@Suite struct UnsupportedTaskTests {
  private let session = URLSession(configuration: .ephemeral)

  /// An upload of data produces no resume data, as with a server without support for resumable uploads.
  @Test func uploadsGiveNoResumeData() async throws {
    let server = try TestServer()
    let (arrived, hold) = (TestServer.Signal(), TestServer.Signal())
    server.route("POST", "/held", script: [.fire(arrived), .wait(hold), .close])
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    var request = URLRequest(url: try #require(URL(string: server.url("/held"))))
    request.httpMethod = "POST"
    let task = session.uploadTask(with: request, from: Data("body".utf8))
    task.resume()
    try await arrived.wait()
    #expect(await task.cancelByProducingResumeData() == nil)
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains(.completed(task.taskIdentifier, .cancelled)))
    #expect((task.error as? URLError)?.uploadTaskResumeData == nil)
    // A completed task and a task without a session produce none either.
    #expect(await task.cancelByProducingResumeData() == nil)
    #expect(await URLSessionUploadTask().cancelByProducingResumeData() == nil)
    hold.fire()
  }

  @Test func uploadsDoNotGoOn() async throws {
    let data = Data("somebody else's".utf8)
    let thrown = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
    #expect(thrown?.code == .unsupportedURL)
    let failure: (any Error)? = await withCheckedContinuation { continuation in
      session.uploadTask(withResumeData: data) { _, _, error in continuation.resume(returning: error) }.resume()
    }
    #expect((failure as? URLError)?.code == .unsupportedURL)
    let recorder = SessionRecorder()
    let delegateSession = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = delegateSession.uploadTask(withResumeData: data)
    task.resume()
    delegateSession.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains(.completed(task.taskIdentifier, .unsupportedURL)))
  }

  @Test func anErrorHasItsResumeData() {
    let data = Data("data".utf8)
    let error = URLError(.networkConnectionLost, userInfo: [NSURLSessionUploadTaskResumeData: data])
    #expect(error.uploadTaskResumeData == data)
    #expect(error.downloadTaskResumeData == nil)
  }
}
