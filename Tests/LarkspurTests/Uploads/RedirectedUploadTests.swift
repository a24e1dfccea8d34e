import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests whether a redirected request keeps its body (RFC 9110 15.4).
@Suite struct RedirectedUploadTests {
  enum Kind: CaseIterable, Sendable {
    case data
    case stream
    case uploadData
    case uploadFile
    case uploadStream
  }

  struct Case: Sendable {
    var status: Int
    var kind: Kind
    var method: String

    /// Whether the redirection keeps the method: 301 and 302 change POST to GET, 303 changes every method to GET, 307
    /// and 308 change none. Browsers and the RFC agree.
    var keepsMethod: Bool {
      switch status {
      case 303: false
      case 301, 302: method != "POST"
      default: true
      }
    }
  }

  static let cases = [301, 302, 303, 307, 308].flatMap { status in
    Kind.allCases.flatMap { kind in ["POST", "PUT"].map { Case(status: status, kind: kind, method: $0) } }
  }

  @Test(arguments: cases)
  func theBodyGoesAlongOrNot(_ row: Case) async throws {
    let server = try TestServer()
    let bytes = TestServer.content(count: 5_000)
    var request = URLRequest(
      url: try #require(URL(string: server.url("/redirect-to?status=\(row.status)&url=/anything/end"))))
    request.httpMethod = row.method
    let recorder = UploadRecorder { InputStream(data: Data(bytes)) }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    defer { session.finishTasksAndInvalidate() }
    switch row.kind {
    case .data:
      request.httpBody = Data(bytes)
      _ = try await session.data(for: request)
    case .stream:
      request.httpBodyStream = InputStream(data: Data(bytes))
      _ = try await session.data(for: request)
    case .uploadData: _ = try await session.upload(for: request, from: Data(bytes))
    case .uploadFile:
      let directory = try TemporaryDirectory()
      let file = directory.url.appending(path: "body")
      try Data(bytes).write(to: file)
      _ = try await session.upload(for: request, fromFile: file)
    case .uploadStream:
      session.uploadTask(withStreamedRequest: request).resume()
      try await server.waitForRequests(2)
    }
    let (first, second) = (try #require(server.requests.first), try #require(server.requests.last))
    #expect(server.requestsReceived == 2)
    #expect(first.body == bytes)
    #expect(second.path == "/anything/end")
    #expect(second.method == (row.keepsMethod ? row.method : "GET"))
    #expect(second.body == (row.keepsMethod ? bytes : []))
    if !row.keepsMethod { #expect(second.fields["content-length"] == nil) }
    #expect(second.connection == first.connection)
    let asked = recorder.asked.withLock { $0 }
    switch row.kind {
    case .stream: #expect(asked == (row.keepsMethod ? 1 : 0))
    case .uploadStream: #expect(asked == (row.keepsMethod ? 2 : 1))
    default: #expect(asked == 0)
    }
  }

  /// The redirected request of a large body uses another connection, since a server that has not read the whole body
  /// may close the first one after its response.
  @Test(arguments: [60_000, 70_000]) func aLargeBodyGoesOverAnotherConnection(count: Int) async throws {
    let server = try TestServer()
    var request = URLRequest(url: try #require(URL(string: server.url("/redirect-to?status=307&url=/anything/end"))))
    request.httpMethod = "POST"
    request.httpBody = Data(count: count)
    let (_, response) = try await URLSession(configuration: .ephemeral).data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requests.map(\.connection) == (count < 65_536 ? [1, 1] : [1, 2]))
  }

  @Test func aStreamIsReadOnce() async throws {
    let server = try TestServer()
    for (from, to) in [("/1", "/2"), ("/2", "/3")] {
      server.route("POST", from) { _ in .init(status: 307, fields: ["Location": to]) }
    }
    server.route("POST", "/3") { _ in .text("end") }
    var request = URLRequest(url: try #require(URL(string: server.url("/1"))))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    let recorder = UploadRecorder { InputStream(data: Data("body".utf8)) }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    _ = try await session.data(for: request)
    #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["body", "body", "body"])
    #expect(recorder.asked.withLock { $0 } == 2)
    session.invalidateAndCancel()
  }

  /// A delegate that replaces the redirected request's body.
  private final class Replacing: NSObject, URLSessionTaskDelegate, Sendable {
    let body: [UInt8]
    init(_ body: [UInt8]) { self.body = body }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      var next = request
      next.httpBodyStream = InputStream(data: Data(body))
      completionHandler(next)
    }
  }

  @Test func theDelegatesRequestHasAStreamOfItsOwn() async throws {
    let server = try TestServer()
    var request = URLRequest(url: try #require(URL(string: server.url("/redirect-to?status=307&url=/anything/end"))))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("first".utf8))
    let session = URLSession(configuration: .ephemeral)
    _ = try await session.data(for: request, delegate: Replacing(Array("second".utf8)))
    #expect(server.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["first", "second"])
    session.invalidateAndCancel()
  }

  @Test func withoutANewStreamTheTaskFails() async throws {
    let server = try TestServer()
    var request = URLRequest(url: try #require(URL(string: server.url("/redirect-to?status=307&url=/post"))))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("once".utf8))
    let ready = request
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).data(for: ready)
    }
    #expect(error?.code == .requestBodyStreamExhausted)
  }
}
