import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Tests responses that contradict themselves about their share of the resource: a partial file must never be taken for
/// the whole one.
@Suite struct ResumeContradictionTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private static let total = 3000
  private static let part = 1000
  private static let tag = "ETag: \"one\"\r\n"

  private func url() throws -> URL { try #require(URL(string: server.url("/file"))) }

  private var whole: Data { Data(TestServer.content(count: Self.total)) }

  /// Resume data of a download whose connection closed after the first part.
  private func data() async throws -> Data {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(Self.total)\r\n\(Self.tag)\r\n"),
      .sendContent(0..<Self.part), .close,
    ])
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url()).resume()
    await recorder.waitForEnd()
    session.finishTasksAndInvalidate()
    return try #require(recorder.error?.downloadTaskResumeData)
  }

  private func resume(_ data: Data) async -> DownloadRecorder {
    await load { $0.downloadTask(withResumeData: data) }
  }

  private func load(_ task: (URLSession) throws -> URLSessionDownloadTask) async rethrows -> DownloadRecorder {
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    try task(session).resume()
    await recorder.waitForEnd()
    session.finishTasksAndInvalidate()
    return recorder
  }

  /// A script that answers with `head` and the content's bytes `sent`, in one chunk if `head` has no `Content-Length`.
  private func script(_ head: String, _ sent: Range<Int>) -> TestServer.Script {
    guard !head.contains("Content-Length") else {
      return [.expectRequest, .send("HTTP/1.1 \(head)\r\n"), .sendContent(sent), .close]
    }
    let count = String(sent.count, radix: 16)
    return [
      .expectRequest, .send("HTTP/1.1 \(head)Transfer-Encoding: chunked\r\n\r\n\(count)\r\n"), .sendContent(sent),
      .send("\r\n0\r\n\r\n"), .close,
    ]
  }

  /// The head reveals the contradiction, so the download starts anew without a range.
  @Test(
    arguments: [
      "200 OK\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\nContent-Length: 2000\r\n",
      "200 OK\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\n",
      "200 OK\r\nContent-Range: bytes 1000-2999/*\r\nContent-Length: 2000\r\n",
      "200 OK\r\n\(Self.tag)Content-Length: 2000\r\n",
      "200 OK\r\nContent-Range: bytes 0-2999/3000\r\nContent-Length: 2000\r\n",
      "206 Partial Content\r\n\(Self.tag)Content-Length: 2000\r\n",
      "206 Partial Content\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\nContent-Length: 1999\r\n",
      "206 Partial Content\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\nContent-Range: bytes 1000-2999/3000\r\n",
      "206 Partial Content\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\n"
        + "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: 2000\r\n",
    ])
  func aContradictionStartsAnew(head: String) async throws {
    let data = try await data()
    server.enqueue(script(head, Self.part..<(head.contains("1999\r") ? 2999 : Self.total)))
    server.enqueue([.serveRoutes])
    server.route("GET", "/file") { _ in .content(count: Self.total) }
    let recorder = await resume(data)
    #expect(recorder.error == nil && recorder.content == whole)
    #expect(server.requestsReceived == 3)
    #expect(server.requests.last?.fields["range"] == nil)
  }

  /// Only the end of the body reveals the contradiction, so the download fails.
  @Test(arguments: ["", "Content-Range: bytes 0-2999/3000\r\n"]) func aShortWholeFails(range: String) async throws {
    let data = try await data()
    server.enqueue(script("200 OK\r\n\(Self.tag)\(range)", Self.part..<Self.total))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .networkConnectionLost && recorder.content == nil)
    // The received bytes may be the tail of the resource, so no download can resume from them.
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  /// A body longer than the range in its head fails the download. The earlier part is kept, and the next attempt
  /// resumes from it.
  @Test func aPartThatIsTooLongIsNotKept() async throws {
    let data = try await data()
    let head = "206 Partial Content\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\n"
    server.enqueue(script(head, 0..<Self.total))
    let failed = await resume(data)
    #expect(failed.error != nil && failed.content == nil)
    let next = try #require(failed.error?.downloadTaskResumeData)
    server.enqueue(script(head + "Content-Length: 2000\r\n", Self.part..<Self.total))
    let recorder = await resume(next)
    #expect(recorder.error == nil && recorder.content == whole)
    #expect(server.requests.last?.fields["range"] == "bytes=1000-")
  }

  @Test func aLongWholeFails() async throws {
    let data = try await data()
    server.enqueue(script("200 OK\r\n\(Self.tag)", 0..<4000))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .badServerResponse && recorder.content == nil)
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  @Test func anotherVersionMayHaveAnotherLength() async throws {
    let data = try await data()
    server.enqueue(script("200 OK\r\nETag: \"two\"\r\n", 0..<500))
    let recorder = await resume(data)
    #expect(recorder.error == nil && recorder.content == Data(TestServer.content(count: 500)))
  }

  /// A server that sends a tail even without a requested range makes the download fail.
  @Test(
    arguments: [
      "200 OK\r\n\(Self.tag)Content-Range: bytes 1000-2999/3000\r\n", "206 Partial Content\r\n\(Self.tag)",
      "206 Partial Content\r\n\(Self.tag)Content-Range: nonsense\r\n",
      "206 Partial Content\r\n\(Self.tag)Content-Range: bytes 0-1999/*\r\n",
    ])
  func aTailForTheWholeFailsInTheEnd(of head: String) async throws {
    let data = try await data()
    let head = head + "Content-Length: 2000\r\n"
    server.enqueue(script(head, Self.part..<Self.total))
    server.enqueue(script(head, Self.part..<Self.total))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .badServerResponse && recorder.content == nil)
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  // MARK: - Downloads without resume data

  @Test(
    arguments: [
      ("200 OK", "bytes 1000-2999/3000"), ("200 OK", "bytes 0-1999/3000"), ("206 Partial Content", "bytes 0-1999/3000"),
      ("206 Partial Content", "bytes 1000-2999/*"), ("203 Other", "bytes 1000-2999/3000"),
    ])
  func aPartThatWasNotAskedForFails(status: String, range: String) async throws {
    for length in ["Content-Length: 2000\r\n", ""] {
      server.enqueue(script("\(status)\r\n\(Self.tag)Content-Range: \(range)\r\n\(length)", Self.part..<Self.total))
      let recorder = try await load { try $0.downloadTask(with: url()) }
      #expect(recorder.error?.code == .badServerResponse && recorder.content == nil)
    }
  }

  /// A redundant but consistent or meaningless `Content-Range` on a complete body is accepted.
  @Test(
    arguments: [
      ("200 OK", "bytes 0-2999/3000"), ("206 Partial Content", "bytes 0-2999/3000"), ("200 OK", "items 0-9/300"),
      ("200 OK", "bytes 0-2999/*"), ("200 OK", "nonsense"),
    ])
  func aWholeThatSaysSoIsTaken(status: String, range: String) async throws {
    for length in ["Content-Length: 3000\r\n", ""] {
      server.enqueue(script("\(status)\r\nContent-Range: \(range)\r\n\(length)", 0..<Self.total))
      let recorder = try await load { try $0.downloadTask(with: url()) }
      #expect(recorder.error == nil && recorder.content == whole)
    }
  }

  @Test func aWholeThatSaysItsLengthHasIt() async throws {
    server.enqueue(script("200 OK\r\nContent-Range: bytes 0-2999/3000\r\n", 0..<2000))
    let recorder = try await load { try $0.downloadTask(with: url()) }
    #expect(recorder.error?.code == .networkConnectionLost && recorder.content == nil)
  }

  /// A range that the program requests itself is delivered as it comes, and so is any response of a data task: the
  /// program can read the range in the response.
  @Test func whatTheProgramAsksForItGets() async throws {
    let head = "206 Partial Content\r\nContent-Range: bytes 1000-2999/3000\r\nContent-Length: 2000\r\n"
    server.enqueue(script(head, Self.part..<Self.total))
    var request = URLRequest(url: try url())
    request.setValue("bytes=1000-", forHTTPHeaderField: "Range")
    let recorder = await load { $0.downloadTask(with: request) }
    #expect(recorder.error == nil && recorder.content == whole.dropFirst(Self.part))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["Range": "bytes=1000-"]
    server.enqueue(script(head, Self.part..<Self.total))
    let (file, _) = try await URLSession(configuration: configuration).download(from: url())
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == whole.dropFirst(Self.part))
    server.enqueue(script(head, Self.part..<Self.total))
    let (data, response) = try await URLSession(configuration: .ephemeral).data(from: url())
    #expect(data == whole.dropFirst(Self.part) && (response as? HTTPURLResponse)?.statusCode == 206)
  }
}
