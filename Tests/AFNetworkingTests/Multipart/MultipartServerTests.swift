import AFNetworking
import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests the sending of forms to a server.
@Suite struct MultipartServerTests {
  let server: TestServer
  let directory: FormDirectory
  let delegate = FormDelegate()
  let session: URLSession

  init() throws {
    server = try TestServer()
    directory = try FormDirectory()
    session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
  }

  /// A delegate that provides a form as often as it is asked for, as a manager does, and answers challenges.
  final class FormDelegate: NSObject, URLSessionDataDelegate {
    let asked = Mutex(0)
    let sent = Mutex<[(total: Int64, expected: Int64)]>([])

    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      asked.withLock { $0 += 1 }
      let stream = task.originalRequest?.httpBodyStream as? any NSCopying
      completionHandler(stream?.copy(with: nil) as? InputStream)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      completionHandler(.useCredential, URLCredential(user: "user", password: "pass", persistence: .none))
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      sent.withLock { $0.append((totalBytesSent, totalBytesExpectedToSend)) }
    }
  }

  private func form(_ path: String, _ block: @escaping (any AFMultipartFormData) -> Void) throws -> URLRequest {
    try AFHTTPRequestSerializer().form(to: server.url(path), block) as URLRequest
  }

  /// Parses the form that the server received.
  private func read(_ request: TestServer.Request) throws -> ReadForm {
    #expect(request.fields["content-length"] == "\(request.bodyCount)")
    #expect(request.fields["transfer-encoding"] == nil)
    return try ReadForm(request.body, contentType: request.fields["content-type"])
  }

  @Test func aFormArrivesWithItsLength() async throws {
    let content = TestServer.content(count: 300_000)
    let file = try directory.file("content.bin", content)
    let request = try form("/post") { form in
      form.appendPart(withForm: Data("value".utf8), name: "field")
      try? form.appendPart(withFileURL: file, name: "file")
    }
    let (_, response) = try await session.data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    let seen = try #require(server.requests.last)
    #expect(try read(seen).parts.map(\.body) == [Array("value".utf8), content])
    let sent = delegate.sent.withLock { $0 }
    #expect(sent.last?.total == Int64(seen.bodyCount))
    #expect(sent.allSatisfy { $0.expected == Int64(seen.bodyCount) })
  }

  @Test func aLargeFileArrivesWhole() async throws {
    let pieces = 10
    let file = try directory.file("large", [])
    let handle = try FileHandle(forWritingTo: file)
    let piece = TestServer.content(count: 1 << 20)
    for _ in 0..<pieces { try handle.write(contentsOf: Data(piece)) }
    try handle.close()
    let request = try form("/post") {
      try? $0.appendPart(withFileURL: file, name: "file", fileName: "f", mimeType: "a/b")
    }
    _ = try await session.data(for: request)
    let seen = try #require(server.requests.last)
    #expect(seen.fields["content-length"] == "\(seen.bodyCount)")
    let type = try #require(request.value(forHTTPHeaderField: "Content-Type"))
    let boundary = try #require(type.split(separator: "boundary=").last)
    var checksum = TestServer.Checksum()
    let head =
      "--\(boundary)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\nContent-Type: a/b\r\n\r\n"
    checksum.update(Array(head.utf8))
    for _ in 0..<pieces { checksum.update(piece) }
    let tail = "\r\n--\(boundary)--\r\n"
    checksum.update(Array(tail.utf8))
    #expect(seen.bodyChecksum == checksum)
    #expect(seen.bodyCount == head.utf8.count + pieces * piece.count + tail.utf8.count)
  }

  // MARK: - Repeated sending

  @Test(arguments: [307, 308])
  func aRedirectionGetsTheFormAsWell(status: Int) async throws {
    let content = TestServer.content(count: 200_000)
    let file = try directory.file("content.bin", content)
    let request = try form("/redirect-to?status=\(status)&url=/post") {
      try? $0.appendPart(withFileURL: file, name: "f")
    }
    let (_, response) = try await session.data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requestsReceived == 2)
    for seen in server.requests { #expect(try read(seen).parts.map(\.body) == [content]) }
    #expect(delegate.asked.withLock { $0 } == 1)
  }

  @Test func aChallengeIsAnsweredWithTheFormOnceMore() async throws {
    server.route("POST", "/secret") { request in
      guard request.fields["authorization"] == "Basic dXNlcjpwYXNz" else {
        return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"here\""])
      }
      return .text("thanks")
    }
    let content = TestServer.content(count: 200_000)
    let file = try directory.file("content.bin", content)
    let request = try form("/secret") { form in
      try? form.appendPart(withFileURL: file, name: "f")
      form.appendPart(with: SlowStream([1, 2, 3]), name: "s", fileName: "s", length: 3, mimeType: "a/b")
    }
    let (data, _) = try await session.data(for: request)
    #expect(String(decoding: data, as: UTF8.self) == "thanks")
    #expect(server.requestsReceived == 2)
    for seen in server.requests { #expect(try read(seen).parts.map(\.body) == [content, [1, 2, 3]]) }
  }

  @Test func aStreamedTaskTakesACopy() async throws {
    let request = try form("/post") { $0.appendPart(withForm: Data("x".utf8), name: "f") }
    for _ in 0..<2 { session.uploadTask(withStreamedRequest: request).resume() }
    let seen = try await server.waitForRequests(2)
    for request in seen { #expect(try read(request).parts.map(\.body) == [Array("x".utf8)]) }
    #expect(delegate.asked.withLock { $0 } == 2)
  }

  @Test func aStreamWithinCannotBeSentTwice() async throws {
    let request = try form("/redirect-to?status=307&url=/post") {
      $0.appendPart(with: InputStream(data: Data([1, 2])), name: "s", fileName: "s", length: 2, mimeType: "a/b")
    }
    let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(error?.code == .requestBodyStreamExhausted)
    #expect(server.requests.count { $0.path == "/post" } == 0)
  }

  @Test func aFileThatHasGoneFailsTheTask() async throws {
    let file = try directory.file("file", [1, 2, 3])
    let request = try form("/post") { try? $0.appendPart(withFileURL: file, name: "f") }
    try FileManager.default.removeItem(at: file)
    let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(error?.code == .requestBodyStreamExhausted)
  }

  @Test func aThrottledFormArrives() async throws {
    let content = TestServer.content(count: 10_000)
    let request = try form("/post") { form in
      form.appendPart(withForm: Data(content), name: "f")
      form.throttleBandwidth(withPacketSize: 2_000, delay: 0.001)
    }
    _ = try await session.data(for: request)
    #expect(try read(#require(server.requests.last)).parts.map(\.body) == [content])
  }

  // MARK: - Sending from a file

  @Test func aFormInAFileIsTheSame() async throws {
    let content = TestServer.content(count: 200_000)
    let file = try directory.file("content.bin", content)
    let request = try form("/post") { try? $0.appendPart(withFileURL: file, name: "f") }
    let written = directory.url.appending(path: "form")
    let serializer = AFHTTPRequestSerializer()
    let rest = try await serializer.request(withMultipartForm: request, writingStreamContentsToFile: written)
    #expect(rest.httpBodyStream == nil)
    _ = try await session.upload(for: rest, fromFile: written)
    let seen = try #require(server.requests.last)
    #expect(try read(seen).parts.map(\.body) == [content])
    // The original request can still be sent.
    _ = try await session.data(for: request)
    #expect(try read(#require(server.requests.last)).parts.map(\.body) == [content])
  }
}
