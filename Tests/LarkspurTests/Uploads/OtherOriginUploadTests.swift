import Foundation
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Uploads whose server names an upload resource of another origin.
@Suite(.timeLimit(.minutes(1))) struct OtherOriginUploadTests {
  let other: TestServer
  let setting: UploadSetting

  init() throws {
    other = try TestServer()
    setting = try UploadSetting(count: 100)
  }

  private var resource: String { other.url("/account/42") }

  /// The server takes the file, names the resource, and breaks off.
  private var broken: TestServer.Script {
    [.expectHead, .announceUpload(at: resource), .expectBody, .close]
  }

  private static let state = "Upload-Complete: ?0\r\nUpload-Length: 100\r\n"

  /// The other server has 40 bytes, and takes the rest.
  private static let rest: TestServer.Script = [
    .expectRequest("HEAD", "/account/42"), .send("HTTP/1.1 204 A\r\nUpload-Offset: 40\r\n\(state)\r\n"),
    .expectRequest("PATCH", "/account/42"),
    .send("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nSet-Cookie: theirs=1\r\nContent-Length: 2\r\n\r\nok"), .hang,
  ]

  /// Answers the questions about upload resources, and challenges.
  private final class Judge: NSObject, URLSessionDataDelegate {
    struct Question: Sendable {
      var response: HTTPURLResponse
      var request: URLRequest
    }

    let questions = Mutex<[Question]>([])
    let challenges = Mutex(0)
    private let answer: @Sendable (URLRequest) -> URLRequest?

    init(_ answer: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 }) { self.answer = answer }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      questions.withLock { $0.append(Question(response: response, request: request)) }
      completionHandler(answer(request))
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      challenges.withLock { $0 += 1 }
      completionHandler(.useCredential, URLCredential(user: "user", password: "password", persistence: .forSession))
    }
  }

  private func upload(
    _ delegate: (any URLSessionDelegate)?, _ request: URLRequest? = nil
  ) async throws -> (Data, URLResponse) {
    let session = setting.session(delegate: delegate)
    defer { session.finishTasksAndInvalidate() }
    return try await session.upload(for: request ?? setting.request(), fromFile: setting.file)
  }

  // MARK: - Without an agreement

  enum Delegate: CaseIterable { case none, withoutTheMethod, refusing, answeringAnotherURL }

  private func delegate(_ kind: Delegate) -> (any URLSessionDelegate)? {
    switch kind {
    case .none: nil
    case .withoutTheMethod: UploadWatcher()
    case .refusing: Judge { _ in nil }
    case .answeringAnotherURL: Judge { $0.url.map { URLRequest(url: $0.appending(path: "more")) } }
    }
  }

  /// The upload ends as with a server that knows no resumable uploads.
  @Test(arguments: Delegate.allCases) func nothingIsSentWithoutAnAgreement(kind: Delegate) async throws {
    setting.server.enqueue(broken)
    let error = await #expect(throws: URLError.self) { _ = try await upload(delegate(kind)) }
    #expect(error?.code == .networkConnectionLost && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST"] && other.connectionsAccepted == 0)
  }

  @Test(arguments: Delegate.allCases) func aRefusedRedirectionOfTheResource(kind: Delegate) async throws {
    setting.uploads.options.faults = [.cut(afterBytes: 30), .redirect(status: 307, to: resource)]
    let error = await #expect(throws: URLError.self) { _ = try await upload(delegate(kind)) }
    #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData != nil)
    #expect(setting.methods == ["POST", "HEAD"] && other.connectionsAccepted == 0)
  }

  /// A server that changes its mind about the place fails the upload. No origin but its own gets a DELETE.
  @Test(arguments: [true, false]) func theOtherOriginIsNotAskedToDelete(isAnotherOne: Bool) async throws {
    let second = isAnotherOne ? other.url("/account/43") : "/files/1"
    setting.server.enqueue([.expectHead, .announceUpload(at: resource), .announceUpload(at: second), .hang])
    let judge = Judge()
    let error = await #expect(throws: URLError.self) { _ = try await upload(judge) }
    #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST"] && other.connectionsAccepted == 0)
    #expect(judge.questions.withLock { $0.isEmpty })
  }

  /// The question is asked only if the resource is needed.
  @Test func anUploadThatDoesNotBreakAsksNothing() async throws {
    setting.server.enqueue([
      .expectHead, .announceUpload(at: resource), .expectBody,
      .send("HTTP/1.1 200 OK\r\nUpload-Complete: ?1\r\nContent-Length: 2\r\n\r\nok"), .hang,
    ])
    let judge = Judge()
    #expect(try await upload(judge).0 == Data("ok".utf8))
    #expect(judge.questions.withLock { $0.isEmpty } && other.connectionsAccepted == 0)
  }

  // MARK: - By agreement

  /// The resource gets what the delegate has agreed to, and neither credentials nor cookies of any origin.
  @Test func theResourceGetsNothingPrivate() async throws {
    setting.server.enqueue(broken)
    other.enqueue(Self.rest)
    let judge = Judge { request in
      var request = request
      request.setValue(nil, forHTTPHeaderField: "X-Dropped")
      request.httpShouldHandleCookies = true
      return request
    }
    let configuration = setting.configuration()
    configuration.httpAdditionalHeaders = ["Authorization": "Basic b3duOm93bg=="]
    let jar = try #require(configuration.httpCookieStorage)
    let properties: [HTTPCookiePropertyKey: any Sendable] = [
      .name: "mine", .value: "1", .domain: "127.0.0.1", .path: "/",
    ]
    jar.setCookie(try #require(HTTPCookie(properties: properties)))
    let session = URLSession(configuration: configuration, delegate: judge, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    var request = try setting.request()
    request.setValue("kept", forHTTPHeaderField: "X-Other")
    request.setValue("dropped", forHTTPHeaderField: "X-Dropped")
    request.setValue("secret", forHTTPHeaderField: "Proxy-Authorization")
    let (data, response) = try await session.upload(for: request, fromFile: setting.file)
    #expect(data == Data("ok".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
    let first = try #require(setting.server.requests.first)
    #expect(first.fields["Authorization"] != nil && first.fields["Cookie"] == "mine=1")
    let requests = other.requests
    #expect(requests.map(\.method) == ["HEAD", "PATCH"])
    #expect(requests.last?.body == Array(setting.bytes[40...]))
    for request in requests {
      #expect(request.fields["Authorization"] == nil && request.fields["Cookie"] == nil)
      #expect(request.fields["X-Other"] == "kept" && request.fields["X-Dropped"] == nil)
    }
    #expect(jar.cookies?.map(\.name) == ["mine"])
    let questions = judge.questions.withLock { $0 }
    let question = try #require(questions.first)
    #expect(questions.count == 1 && question.response.statusCode == 104)
    #expect(question.response.value(forHTTPHeaderField: "Location") == resource)
    #expect(question.request.url?.absoluteString == resource && question.request.httpMethod == "PATCH")
    #expect(question.request.value(forHTTPHeaderField: "Authorization") == nil)
    #expect(question.request.value(forHTTPHeaderField: "Content-Type") == nil && question.request.httpBody == nil)
  }

  /// A challenge of the resource is its response.
  @Test func theResourceGetsNoPassword() async throws {
    setting.server.enqueue(
      [
        .expectRequest("POST", "/files"),
        .send("HTTP/1.1 401 A\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"), .expectHead,
        .announceUpload(at: resource), .expectBody, .close,
      ])
    other.enqueue([
      .expectRequest("HEAD", "/account/42"),
      .send("HTTP/1.1 401 A\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"), .hang,
    ])
    let judge = Judge()
    let error = await #expect(throws: URLError.self) { _ = try await upload(judge) }
    #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData != nil)
    #expect(setting.server.requests.map { $0.fields["Authorization"] } == [nil, "Basic dXNlcjpwYXNzd29yZA=="])
    #expect(other.requests.map(\.method) == ["HEAD"] && other.requests.first?.fields["Authorization"] == nil)
    #expect(judge.challenges.withLock { $0 } == 1)
  }

  /// An agreement to one resource is none to where that one redirects to.
  @Test func eachResourceIsAskedAbout() async throws {
    setting.server.enqueue(broken)
    let third = try TestServer()
    other.enqueue([
      .expectRequest("HEAD", "/account/42"),
      .send("HTTP/1.1 308 A\r\nLocation: \(third.url("/account/42"))\r\nContent-Length: 0\r\n\r\n"), .hang,
    ])
    third.enqueue(Self.rest)
    // The delegate adds a credential for the first resource alone.
    let judge = Judge { [resource] request in
      var request = request
      if request.url?.absoluteString == resource { request.setValue("Bearer 1", forHTTPHeaderField: "Authorization") }
      return request
    }
    #expect(try await upload(judge).0 == Data("ok".utf8))
    #expect(judge.questions.withLock { $0.map(\.response.statusCode) } == [104, 308])
    #expect(other.requests.map { $0.fields["Authorization"] } == ["Bearer 1"])
    #expect(third.requests.map { $0.fields["Authorization"] } == [nil, nil])
  }

  /// The origin that counts is the one that the file has gone to.
  @Test func aRedirectedUploadIsAtHomeWhereItIs() async throws {
    var options = TestServer.ResumableUpload()
    options.faults = [.cut(afterBytes: 30)]
    let uploads = other.resumableUploads("/files", options)
    let request = try setting.request("/redirect-to?status=308&url=\(other.url("/files"))")
    let (_, response) = try await upload(nil, request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200 && uploads.all.map(\.bytes) == [setting.bytes])
    #expect(other.requests.map(\.method) == ["POST", "HEAD", "PATCH"])
  }

  // MARK: - Resume data

  /// Returns resume data that names the resource of the other origin.
  private func foreignData() async throws -> Data {
    setting.uploads.options.faults = [.cut(afterBytes: 30)]
    let data = try #require(try await setting.broken().uploadTaskResumeData)
    var content = try SignedUploadData.decode(data)
    content.point.resource = resource
    return try #require(SignedUploadData.encode(content))
  }

  @Test(arguments: Delegate.allCases) func resumeDataIsNoAgreement(kind: Delegate) async throws {
    let data = try await foreignData()
    let session = setting.session(delegate: delegate(kind))
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
    #expect(error?.code == .badServerResponse && error?.uploadTaskResumeData == nil)
    #expect(setting.methods == ["POST"] && other.connectionsAccepted == 0)
  }

  @Test func resumeDataByAgreement() async throws {
    let data = try await foreignData()
    other.enqueue(Self.rest)
    let judge = Judge()
    let session = setting.session(delegate: judge)
    defer { session.invalidateAndCancel() }
    let (content, _) = try await session.upload(resumeFrom: data)
    #expect(content == Data("ok".utf8) && other.requests.map(\.method) == ["HEAD", "PATCH"])
    let question = try #require(judge.questions.withLock { $0.first })
    #expect(
      question.response.statusCode == 104 && question.response.url?.absoluteString == setting.server.url("/files"))
    #expect(question.response.value(forHTTPHeaderField: "Location") == resource)
  }

  /// The file has changed since: the resource of the other origin is not deleted.
  @Test func resumeDataOfAChangedFile() async throws {
    let data = try await foreignData()
    try setting.changeFile()
    let session = setting.session(delegate: Judge())
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { _ = try await session.upload(resumeFrom: data) }
    #expect(error?.code == .cannotOpenFile && other.connectionsAccepted == 0)
  }
}
