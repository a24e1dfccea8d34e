import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Uploads that break off and continue by themselves.
@Suite(.timeLimit(.minutes(1))) struct ResumableUploadTests {
  typealias Draft = URLSessionConfiguration.ResumableUploadDraft
  typealias Server = TestServer.ResumableUpload

  private static let drafts: [Draft] = [.draft01, .draft11, .draft12, .draft13]

  private func upload(_ setting: UploadSetting, _ session: URLSession) async throws -> HTTPURLResponse {
    defer { session.finishTasksAndInvalidate() }
    let (_, response) = try await session.upload(for: setting.request(), fromFile: setting.file)
    return try #require(response as? HTTPURLResponse)
  }

  // MARK: - Connections that break

  @Test(arguments: drafts, Array(0...10)) func aSmallFileBreaksOffAtEachTenth(draft: Draft, tenth: Int) async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: tenth * 10)]
    let setting = try UploadSetting(count: 100, server)
    #expect(try await upload(setting, setting.session(draft)).statusCode == 200)
    setting.expectWhole()
    let requests = setting.server.requests
    #expect(requests.map(\.method) == ["POST", "HEAD", "PATCH"])
    let last = try #require(requests.last)
    #expect(last.fields["Upload-Offset"] == String(tenth * 10))
    #expect(last.fields["Content-Length"] == String(100 - tenth * 10))
    #expect(requests[0].fields["Content-Type"] == "text/plain")
    #expect(last.fields.values("Content-Type") == (draft == .draft01 ? [] : ["application/partial-upload"]))
    let versions: [Draft: String] = [.draft01: "3", .draft11: "8", .draft12: "9", .draft13: "10"]
    #expect(requests.allSatisfy { $0.fields["Upload-Draft-Interop-Version"] == versions[draft] })
  }

  @Test(arguments: drafts) func aLargeFileBreaksOffAtRandom(draft: Draft) async throws {
    var random = SeededGenerator(for: "ResumableUploadTests.aLargeFileBreaksOffAtRandom")
    for _ in 0..<6 {
      let count = 6 << 20
      var server = Server()
      // The offset is asked for between two requests that are cut.
      for number in 0..<3 {
        let bytes = Int.random(in: (number == 0 ? 1 << 20 : 0)...(2 << 20), using: &random)
        server.faults += [Bool.random(using: &random) ? .cut(afterBytes: bytes) : .close(afterBytes: bytes), .none]
      }
      let setting = try UploadSetting(count: count, server)
      let watcher = UploadWatcher()
      #expect(try await upload(setting, setting.session(draft, failuresMax: nil, delegate: watcher)).statusCode == 200)
      setting.expectWhole()
      #expect(setting.methods == ["POST", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"])
      let sent = watcher.record.withLock { $0.sent }
      #expect(sent.allSatisfy { $0.expected == count && $0.bytes > 0 } && sent.last?.total == Int64(count))
    }
  }

  /// A request without content does not count as sent content.
  @Test func theCountOfSentBytesDoesNotJump() async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 1 << 20)]
    // More bytes than the socket buffers hold.
    let setting = try UploadSetting(count: 24 << 20, server)
    let watcher = UploadWatcher()
    _ = try await upload(setting, setting.session(delegate: watcher))
    let sent = watcher.record.withLock { $0.sent }
    #expect(sent.count { $0.total == 24 << 20 } == 1 && sent.last?.total == 24 << 20)
  }

  @Test func aConnectionWithTLSBreaks() async throws {
    let authority = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    var upload = Server()
    upload.faults = [.cut(afterBytes: 2 << 20), .none, .close(afterBytes: 1 << 20)]
    let uploads = server.resumableUploads("/files", upload)
    let setting = try UploadSetting(count: 6 << 20)
    let configuration = setting.configuration()
    configuration.tlsTrustSettings.roots = .only([try #require(TLSCertificate(Data(authority.rootCertificateDER)))])
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try #require(URL(string: server.url("/files"))))
    request.httpMethod = "PUT"
    let (_, response) = try await session.upload(for: request, fromFile: setting.file)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(uploads.all.map(\.bytes) == [setting.bytes])
    #expect(server.requests.map(\.method) == ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"])
  }

  @Test(arguments: drafts) func theResponseIsLost(draft: Draft) async throws {
    var server = Server()
    server.faults = [.loseResponse]
    let setting = try UploadSetting(count: 1000, server)
    // The server has everything. The response to HEAD says so, or an append of nothing gets the lost response.
    let isRepeated = draft == .draft13
    #expect(try await upload(setting, setting.session(draft)).statusCode == (isRepeated ? 200 : 204))
    setting.expectWhole()
    #expect(setting.methods == (isRepeated ? ["POST", "HEAD", "PATCH"] : ["POST", "HEAD"]))
  }

  /// The connection is lost in the content of the response that completes the upload: the file is not sent again.
  @Test(arguments: drafts) func theContentOfTheResponseIsLost(draft: Draft) async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 500), .none, .field("Content-Length", "100000")]
    let setting = try UploadSetting(count: 1000, server)
    let error = await #expect(throws: URLError.self) { _ = try await upload(setting, setting.session(draft)) }
    #expect(error?.code == .networkConnectionLost)
    setting.expectWhole()
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.upload(resumeFrom: #require(error?.uploadTaskResumeData))
    #expect((response as? HTTPURLResponse)?.statusCode == (draft == .draft13 ? 200 : 204))
    setting.expectWhole()
  }

  /// By the rules of draft 12 a server may complete an upload before its last byte.
  @Test(arguments: drafts) func theServerHasEnough(draft: Draft) async throws {
    var server = Server()
    server.limits.maxAppendSize = 400
    server.enforcesLimits = false
    // The client gives up the first request when it learns the limit, however many bytes have come: here none.
    server.faults = [.cut(afterBytes: 0), .none, .complete(true)]
    let setting = try UploadSetting(count: 1000, server)
    if draft == .draft12 || draft == .draft13 {
      #expect(try await upload(setting, setting.session(draft)).statusCode == 204)
      #expect(setting.uploads.all.map(\.bytes.count) == [400])
    } else if draft == .draft11 {
      let error = await #expect(throws: URLError.self) { _ = try await upload(setting, setting.session(draft)) }
      #expect(error?.code == .badServerResponse)
    }
  }

  @Test(arguments: drafts) func aServerThatIsOverloaded(draft: Draft) async throws {
    var server = Server()
    server.faults = [.status(503), .status(503), .none, .status(500)]
    let setting = try UploadSetting(count: 1000, server)
    #expect(try await upload(setting, setting.session(draft)).statusCode == 200)
    setting.expectWhole()
    #expect(setting.methods == ["POST", "HEAD", "HEAD", "PATCH", "HEAD", "PATCH"])
  }

  /// After as many failures without progress as the session allows, the error has resume data.
  @Test func aServerThatStaysAway() async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 10), .status(503), .status(503), .status(503), .status(503)]
    let setting = try UploadSetting(count: 100, server)
    let error = await #expect(throws: URLError.self) { _ = try await upload(setting, setting.session()) }
    #expect(error?.code == .badServerResponse)
    #expect(error?.failingURL?.absoluteString == setting.server.url("/files"))
    #expect(setting.methods == ["POST", "HEAD", "HEAD", "HEAD"])
    let data = try #require(error?.uploadTaskResumeData)
    setting.uploads.options.faults = []
    _ = try await setting.session().upload(resumeFrom: data)
    setting.expectWhole()
  }

  // MARK: - Servers without it

  @Test(arguments: drafts) func aServerWithoutIt(draft: Draft) async throws {
    var server = Server()
    server.versions = []
    let setting = try UploadSetting(count: 100, server)
    #expect(try await upload(setting, setting.session(draft)).statusCode == 200)
    setting.expectWhole()
    setting.uploads.options.faults = [.cut(afterBytes: 50)]
    let error = try await setting.broken(draft)
    #expect(error.code == .networkConnectionLost && error.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST", "POST"])
  }

  /// Only uploads of files offer the protocol, and not if the program speaks it itself or does not want it.
  @Test func requestsWithoutIt() async throws {
    let setting = try UploadSetting(count: 100)
    let session = setting.session()
    defer { session.invalidateAndCancel() }
    _ = try await session.upload(for: setting.request("/post"), from: Data(setting.bytes))
    var own = try setting.request("/post")
    own.setValue("?1", forHTTPHeaderField: "Upload-Complete")
    _ = try await session.upload(for: own, fromFile: setting.file)
    _ = try await setting.session(.none).upload(for: setting.request("/post"), fromFile: setting.file)
    let configuration = setting.configuration()
    configuration.httpAdditionalHeaders = ["Upload-Draft-Interop-Version": "3"]
    let other = URLSession(configuration: configuration)
    _ = try await other.upload(for: setting.request("/post"), fromFile: setting.file)
    other.invalidateAndCancel()
    let requests = setting.server.requests
    #expect(requests.count == 4 && requests.allSatisfy { $0.bodyCount == 100 })
    #expect(requests.map { $0.fields.filter { $0.name.hasPrefix("Upload-") }.map(\.value) } == [[], ["?1"], [], ["3"]])
    _ = try await session.upload(for: setting.request("/post"), fromFile: setting.file)
    let last = try #require(setting.server.requests.last)
    #expect(last.fields["Upload-Complete"] == "?1" && last.fields["Upload-Length"] == "100")
  }

  // MARK: - Files that change

  @Test(arguments: drafts) func theFileChangesOnTheWay(draft: Draft) async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 60)]
    let setting = try UploadSetting(count: 100, server)
    let watcher = UploadWatcher()
    let session = setting.session(draft, delegate: watcher)
    let task = try session.uploadTask(with: setting.request(), fromFile: setting.file)
    // Called on the loop, before the connection breaks.
    task.uploadPointHandler = { data in
      if data != nil { #expect(throws: Never.self) { try setting.changeFile() } }
    }
    task.resume()
    try await watcher.waitForEnd()
    session.invalidateAndCancel()
    let error = watcher.record.withLock { $0.failure }
    #expect(error?.code == .cannotOpenFile && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST", "DELETE"])
    let upload = try #require(setting.uploads.all.first)
    #expect(!upload.isComplete && !upload.isActive && upload.bytes.count == 60)
  }

  // MARK: - Interim responses

  @Test func theDelegateHasTheInterimResponse() async throws {
    let setting = try UploadSetting(count: 100)
    let watcher = UploadWatcher()
    let session = setting.session(delegate: watcher)
    try session.uploadTask(with: setting.request(), fromFile: setting.file).resume()
    try await watcher.waitForEnd()
    session.invalidateAndCancel()
    let interim = watcher.record.withLock { $0.interim }
    #expect(interim.map(\.statusCode) == [104])
    #expect(interim.first?.value(forHTTPHeaderField: "Location") == "/files/1")
    #expect(interim.first?.url?.absoluteString == setting.server.url("/files"))
  }

  private static func progress(_ count: Int) -> String {
    "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\nUpload-Offset: \(count)\r\n\r\n"
  }

  /// Each KiB that has been sent allows one more interim response. A server may report its progress often; nothing but
  /// interim responses ends the upload.
  @Test(arguments: [(90, false), (100_000, true)]) func manyInterimResponses(count: Int, fails: Bool) async throws {
    let size = 100_000
    let setting = try UploadSetting(count: size)
    let reports = (1...count).map { Self.progress(size * $0 / count) }.joined()
    setting.server.enqueue([
      .expectHead, .announceUpload(at: "/files/7"), .expectBody, .send(reports),
      .send("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 2\r\n\r\nok"), .hang,
    ])
    let watcher = UploadWatcher()
    let session = setting.session(failuresMax: 1, delegate: watcher)
    defer { session.invalidateAndCancel() }
    try session.uploadTask(with: setting.request(), fromFile: setting.file).resume()
    try await watcher.waitForEnd()
    let record = watcher.record.withLock { $0 }
    #expect(record.failure?.code == (fails ? .dataLengthExceedsMaximum : nil))
    #expect(record.failure?.uploadTaskResumeData == nil || fails)
    #expect(record.interim.first?.value(forHTTPHeaderField: "Location") == "/files/7")
    if !fails { #expect(record.interim.last?.value(forHTTPHeaderField: "Upload-Offset") == String(size)) }
  }

  // MARK: - Redirections and credentials

  @Test(arguments: drafts) func redirections(draft: Draft) async throws {
    var server = Server()
    server.faults = [.cut(afterBytes: 30), .redirect(status: 307, to: "/files/1?again=1"), .none]
    let setting = try UploadSetting(count: 100, server)
    let session = setting.session(draft)
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.upload(
      for: setting.request("/redirect-to?status=308&url=/files"), fromFile: setting.file)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    setting.expectWhole()
    #expect(setting.methods == ["POST", "POST", "HEAD", "HEAD", "PATCH"])
    // The append goes to where the request for the offset was redirected.
    let targets = setting.server.requests.dropFirst(2).map(\.target)
    #expect(targets == ["/files/1", "/files/1?again=1", "/files/1?again=1"])
  }

  /// A server that names an upload resource before it asks for credentials names another one for the second request.
  @Test func aChallengeAfterTheAnnouncement() async throws {
    let setting = try UploadSetting(count: 100)
    setting.server.enqueue([
      .expectHead, .announceUpload(at: "/a/1"), .expectBody,
      .send("HTTP/1.1 401 A\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"), .expectHead,
      .announceUpload(at: "/a/2"), .expectBody,
      .send("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 2\r\n\r\nok"), .hang,
    ])
    let session = setting.session(delegate: PasswordGiver())
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.upload(for: setting.request(), fromFile: setting.file)
    #expect(data == Data("ok".utf8) && setting.methods == ["POST", "POST"])
  }

  /// A challenge of the upload resource is answered with the program's credential, and the append is sent again.
  @Test(arguments: [true, false], [true, false])
  func aChallengeOnTheAppend(isRelative: Bool, isOfURL: Bool) async throws {
    let setting = try UploadSetting(count: 100)
    let state = "Upload-Complete: ?0\r\nUpload-Length: 100\r\n"
    let resource = isRelative ? "/a/1" : setting.server.url("/a/1")
    setting.server.enqueue([.expectHead, .announceUpload(at: resource), .expectBody, .close])
    setting.server.enqueue([
      .expectRequest("HEAD", "/a/1"), .send("HTTP/1.1 204 A\r\nUpload-Offset: 40\r\n\(state)\r\n"),
      .expectRequest("PATCH", "/a/1"),
      .send("HTTP/1.1 401 A\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"),
      .expectRequest("PATCH", "/a/1"),
      .send("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 2\r\n\r\nok"), .hang,
    ])
    let credential = isOfURL ? "user:password@" : ""
    let url = setting.server.url("/files").replacing("http://", with: "http://\(credential)")
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = "POST"
    let session = setting.session(delegate: isOfURL ? nil : PasswordGiver())
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.upload(for: request, fromFile: setting.file)
    #expect(data == Data("ok".utf8))
    let appends = setting.server.requests.filter { $0.method == "PATCH" }
    #expect(appends.map(\.body) == [Array(setting.bytes[40...]), Array(setting.bytes[40...])])
    #expect(appends.map { $0.fields["Authorization"] } == [nil, "Basic dXNlcjpwYXNzd29yZA=="])
  }

  /// Answers challenges.
  private final class PasswordGiver: NSObject, URLSessionDataDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      completionHandler(.useCredential, URLCredential(user: "user", password: "password", persistence: .forSession))
    }
  }

  // MARK: - Limits

  @Test func aLimitOfEachRequest() async throws {
    var server = Server()
    server.limits.maxAppendSize = 1000
    let setting = try UploadSetting(count: 3500, server)
    #expect(try await upload(setting, setting.session()).statusCode == 200)
    #expect(setting.uploads.all.last?.bytes == setting.bytes && setting.uploads.all.last?.isComplete == true)
    #expect(setting.methods == ["POST", "POST", "PATCH", "PATCH", "PATCH"])
    // The first request does not know the limit.
    let counts = setting.server.requests.map { $0.fields["Content-Length"] }
    #expect(counts == ["3500", "1000", "1000", "1000", "500"])
  }

  /// The server names its limit in the interim response: the upload ends, and its resource is deleted.
  @Test func aLimitOfTheWhole() async throws {
    var server = Server()
    server.limits.maxSize = 99
    server.enforcesLimits = false
    server.faults = [.hang]
    let setting = try UploadSetting(count: 100, server)
    let error = await #expect(throws: URLError.self) { _ = try await upload(setting, setting.session()) }
    #expect(error?.code == .dataLengthExceedsMaximum && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST", "DELETE"])
    #expect(setting.uploads.all.map(\.isActive) == [false])
  }

  /// A server that does not answer the DELETE delays the failure, and does not replace it by a timeout.
  @Test func aServerThatDoesNotAnswerTheDeletion() async throws {
    let setting = try UploadSetting(count: 100)
    setting.server.enqueue([.expectHead, .announceUpload(at: "/a/1", ["Upload-Limit": "max-size=99"]), .hang])
    setting.server.enqueue([.expectHead, .hang])
    var request = try setting.request()
    request.timeoutInterval = 2.5
    let configuration = setting.configuration()
    configuration.uploadRetry?.cancellationTimeMax = .seconds(3)
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.upload(for: request, fromFile: setting.file)
    }
    #expect(error?.code == .dataLengthExceedsMaximum)
    _ = try await setting.server.waitForRequests(2)
    #expect(setting.methods == ["POST", "DELETE"])
  }
}
