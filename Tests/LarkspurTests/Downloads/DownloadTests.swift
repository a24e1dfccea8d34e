import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests downloads that are not interrupted.
@Suite struct DownloadTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  private func download(_ path: String) async throws -> DownloadRecorder {
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url(path)).resume()
    await recorder.waitForEnd()
    session.finishTasksAndInvalidate()
    return recorder
  }

  private func isThere(_ url: URL?) -> Bool { url.map { FileManager.default.fileExists(atPath: $0.path) } ?? true }

  @Test(arguments: ["/bytes/300000", "/chunked/300000", "/close-delimited/300000"])
  func theDelegateHearsOfEveryByte(path: String) async throws {
    let recorder = try await download(path)
    #expect(recorder.content == Data(TestServer.content(count: 300_000)))
    let isKnown = path.hasPrefix("/bytes")
    var sum: Int64 = 0
    for case .wrote(let count, let total, let expected) in recorder.events {
      sum += count
      #expect(total == sum)
      #expect(expected == (isKnown ? 300_000 : NSURLSessionTransferSizeUnknown))
    }
    #expect(sum == 300_000)
    #expect(recorder.events.suffix(2) == [.finished, .completed(nil)])
  }

  @Test func theFileGoesWithTheCall() async throws {
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url("/bytes/1000")).resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.content?.count == 1_000)
    #expect(!isThere(recorder.location))
  }

  @Test func aMovedFileStays() async throws {
    let directory = try TemporaryDirectory()
    let target = directory.url.appending(path: "kept")
    let source = try url("/bytes/1000")
    let session = URLSession(configuration: .ephemeral)
    let problem: (any Error)? = await withCheckedContinuation { continuation in
      session.downloadTask(with: source) { location, _, error in
        do {
          guard let location else { throw error ?? URLError(.unknown) }
          try FileManager.default.moveItem(at: location, to: target)
          continuation.resume(returning: nil)
        } catch {
          continuation.resume(returning: error)
        }
      }.resume()
    }
    #expect(problem == nil)
    #expect(try Data(contentsOf: target) == Data(TestServer.content(count: 1_000)))
  }

  @Test(arguments: ["/bytes/0", "/status/204"])
  func anEmptyBodyIsAnEmptyFile(path: String) async throws {
    let recorder = try await download(path)
    #expect(recorder.content == Data())
    #expect(recorder.events == [.finished, .completed(nil)])
  }

  @Test func anErrorsBodyIsAFileToo() async throws {
    let (file, response) = try await URLSession(configuration: .ephemeral).download(from: url("/status/404"))
    #expect((response as? HTTPURLResponse)?.statusCode == 404)
    #expect(try String(contentsOf: file, encoding: .utf8).contains("404"))
    try FileManager.default.removeItem(at: file)
  }

  @Test func contentCodingsAreUndoneOnTheWay() async throws {
    let recorder = try await download("/gzip")
    #expect(recorder.content?.first == UInt8(ascii: "{"))
    for case .wrote(_, _, let expected) in recorder.events { #expect(expected == NSURLSessionTransferSizeUnknown) }
  }

  @Test func aDataTaskMayBecomeADownload() async throws {
    let recorder = DownloadRecorder(disposition: .becomeDownload)
    let session = URLSession.with(recorder)
    try session.dataTask(with: url("/bytes/5000")).resume()
    await recorder.waitForEnd()
    #expect(recorder.content == Data(TestServer.content(count: 5_000)))
    #expect(recorder.events.first == .becameDownload)
    #expect(recorder.events.suffix(2) == [.finished, .completed(nil)])
  }

  @Test func whereNothingHasComeThereIsNothingToGoOnFrom() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"x\"\r\n\r\n"), .close])
    let recorder = try await download("/x")
    #expect(recorder.error?.code == .networkConnectionLost)
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  @Test func suspendedInMidBodyNothingIsLost() async throws {
    let proceed = TestServer.Signal()
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"), .sendContent(0..<100_000),
      .wait(proceed), .sendContent(100_000..<300_000), .hang,
    ])
    let recorder = DownloadRecorder { task, total in
      guard total == 100_000 else { return }
      task.suspend()
      proceed.fire()
      // Resumes on another thread, at an unpredictable moment.
      Thread.detachNewThread { task.resume() }
    }
    try URLSession.with(recorder).downloadTask(with: url("/x")).resume()
    await recorder.waitForEnd()
    #expect(recorder.content == Data(TestServer.content(count: 300_000)))
  }
}
