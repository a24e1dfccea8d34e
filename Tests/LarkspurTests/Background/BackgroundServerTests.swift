import Foundation
import LarkspurHTTP
import LarkspurTestServer
import Testing

@testable import Larkspur

/// Tests what background transfers make of a server that has changed between two attempts.
@Suite(.timeLimit(.minutes(1))) struct BackgroundServerTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private static let (part, total) = (100_000, 300_000)

  /// Returns the steps of a connection that breaks off in the middle of a body.
  private static let broken: TestServer.Script = [
    .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\nETag: \"a\"\r\n\r\n"), .sendContent(0..<part),
    .close,
  ]

  private func rest(_ tag: String) -> TestServer.Response {
    var response = TestServer.Response(
      status: 206, fields: ["ETag": tag], body: .bytes([UInt8](repeating: 120, count: Self.total - Self.part)))
    response.fields["Content-Range"] = "bytes \(Self.part)-\(Self.total - 1)/\(Self.total)"
    return response
  }

  /// Loads a file whose first attempt breaks off, and whose second attempt gets a response.
  private func load(_ second: TestServer.Script) async throws -> DownloadRecorder {
    fixture.server.enqueue(Self.broken, second)
    fixture.server.route("GET", "/file") { _ in TestServer.Response(fields: ["ETag": "\"b\""], body: .bytes(Self.new)) }
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    session.downloadTask(with: try fixture.url("/file")).resume()
    await recorder.waitForEnd()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(fixture.server.requests.count > 1 && fixture.server.requests[1].fields["range"] == "bytes=\(Self.part)-")
    #expect(fixture.server.requests.dropFirst().first?.fields["if-range"] == "\"a\"")
    #expect(fixture.journal().allSatisfy { $0 == "session" || $0 == "lock" })
    return recorder
  }

  private static let new = Array("another version of the file".utf8)

  /// The server has another version, and sends it whole.
  @Test func aChangedFileComesWhole() async throws {
    let recorder = try await load([.serveRoutes])
    #expect(recorder.error == nil && recorder.content == Data(Self.new))
  }

  /// The server sends a part of another version all the same.
  @Test func aPartOfAnotherVersionIsNotUsed() async throws {
    let recorder = try await load([.expectRequest, .respond(rest("\"b\"")), .close])
    #expect(recorder.error == nil && recorder.content == Data(Self.new))
    #expect(fixture.server.requests.last?.fields["range"] == nil)
  }

  /// The file has become shorter than the part.
  @Test func aRangeBehindTheEndStartsOver() async throws {
    let none = TestServer.Response(status: 416, fields: ["Content-Range": "bytes */\(Self.new.count)"])
    let recorder = try await load([.expectRequest, .respond(none), .serveRoutes])
    #expect(recorder.error == nil && recorder.content == Data(Self.new))
    #expect(fixture.server.requests.last?.fields["range"] == nil)
  }

  /// An overloaded server between two parts: the part is kept.
  @Test func anOverloadedServerDoesNotCostThePart() async throws {
    let busy = TestServer.Response(status: 503, fields: ["Retry-After": "0"])
    let recorder = try await load([.expectRequest, .respond(busy), .expectRequest, .respond(rest("\"a\"")), .hang])
    let content = TestServer.content(count: Self.part) + [UInt8](repeating: 120, count: Self.total - Self.part)
    #expect(recorder.error == nil && recorder.content == Data(content))
  }

  /// A response without `Retry-After` is the task's response, whatever its status.
  @Test(arguments: [404, 500, 503]) func otherStatusesAreResponses(status: Int) async throws {
    fixture.server.route("GET", "/file") { _ in .text("words", status: status) }
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.error == nil && recorder.content == Data("words".utf8))
    #expect((task.response as? HTTPURLResponse)?.statusCode == status && fixture.server.requestsReceived == 1)
  }

  // MARK: - Uploads

  typealias Draft = URLSessionConfiguration.ResumableUploadDraft

  private static let content = TestServer.content(count: 100_000)

  /// Uploads 100,000 bytes in the background.
  ///
  /// - Returns: The uploads that the server has, and the error.
  private func upload(
    _ draft: Draft, _ faults: [TestServer.ResumableUpload.Fault]
  ) async throws -> (uploads: [TestServer.Upload], error: URLError?) {
    var options = TestServer.ResumableUpload()
    options.faults = faults
    let uploads = fixture.server.resumableUploads("/files", options)
    let file = fixture.folder.appending(path: "upload")
    try Data(Self.content).write(to: file)
    let recorder = SessionRecorder()
    let configuration = fixture.configuration()
    configuration.resumableUploadDraft = draft
    let session = fixture.session(recorder, configuration)
    var request = URLRequest(url: try fixture.url("/files"))
    request.httpMethod = "POST"
    let task = session.uploadTask(with: request, fromFile: file)
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(fixture.journal().allSatisfy { $0 == "session" || $0 == "lock" })
    return (uploads.all, task.error as? URLError)
  }

  /// A background upload that breaks off goes on where the server is, in all versions of the protocol.
  @Test(arguments: [Draft.draft01, .draft11, .draft13], [1, 50_000, 99_999])
  func anUploadBreaksOff(draft: Draft, count: Int) async throws {
    let (uploads, error) = try await upload(draft, [.cut(afterBytes: count)])
    #expect(error == nil && uploads.map(\.bytes) == [Self.content])
    #expect(fixture.server.requests.map(\.method) == ["POST", "HEAD", "PATCH"])
  }

  /// A server that loses the part that it had: the upload starts over, in the attempt in which it began as well.
  @Test func aLostPartStartsOver() async throws {
    let (uploads, error) = try await upload(.draft11, [.cut(afterBytes: 50_000), .forget(status: 404)])
    #expect(error == nil && uploads.map(\.bytes.count) == [50_000, 100_000])
    #expect(fixture.server.requests.map(\.method) == ["POST", "HEAD", "POST"])
  }

  /// A response that breaks off behind the last byte: the file is not sent again, whatever becomes of the resource.
  @Test(arguments: [true, false]) func aCompleteUploadIsNotRepeated(isForgotten: Bool) async throws {
    var faults: [TestServer.ResumableUpload.Fault] = [
      .cut(afterBytes: 50_000), .none, .field("Content-Length", "1000000"),
    ]
    if isForgotten { faults.append(.forget(status: 410)) }
    let (uploads, error) = try await upload(.draft11, faults)
    #expect(error?.code == (isForgotten ? .badServerResponse : nil))
    #expect(uploads.map(\.bytes) == [Self.content])
    #expect(fixture.server.requests.map(\.method) == ["POST", "HEAD", "PATCH", "HEAD"])
  }

  /// An upload resource of another origin is not used, because a background session asks nothing. The upload starts over.
  @Test func anUploadResourceOfAnotherOrigin() async throws {
    let other = try TestServer()
    fixture.server.enqueue([.expectHead, .announceUpload(at: other.url("/account/42")), .expectBody, .close])
    let (uploads, error) = try await upload(.draft11, [])
    #expect(error == nil && uploads.map(\.bytes) == [Self.content])
    #expect(fixture.server.requests.map(\.method) == ["POST", "POST"] && other.connectionsAccepted == 0)
  }

  /// Resume data that names such a resource makes the upload start over as well.
  @Test func resumeDataOfAnotherOrigin() async throws {
    let other = try TestServer()
    let setting = try UploadSetting(count: 100)
    setting.uploads.options.faults = [.cut(afterBytes: 30)]
    var content = try SignedUploadData.decode(#require(try await setting.broken().uploadTaskResumeData))
    content.point.resource = other.url("/account/42")
    let recorder = SessionRecorder()
    let session = fixture.session(recorder)
    let task = session.uploadTask(withResumeData: try #require(SignedUploadData.encode(content)))
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(task.error == nil && setting.methods == ["POST", "POST"] && other.connectionsAccepted == 0)
    #expect(setting.uploads.all.last?.bytes == setting.bytes)
  }
}
