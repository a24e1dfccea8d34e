import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests the policy with a server that fails. `RetryRulesTests` has its decisions.
@Suite struct RetryPolicyTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func session(_ policy: URLSession.RetryPolicy = .standard) -> URLSession {
    var policy = policy
    policy.rules.firstDelay = .zero
    let configuration = URLSessionConfiguration.ephemeral
    configuration.interceptors = [policy]
    return URLSession(configuration: configuration)
  }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  /// An answer of a server that has another one ready on each connection.
  private func respond(_ status: Int, _ fields: String = "") -> TestServer.Script {
    [.expectRequest, .send("HTTP/1.1 \(status) X\r\n\(fields)Content-Length: 0\r\nConnection: close\r\n\r\n"), .close]
  }

  @Test func aServerThatRecovers() async throws {
    server.enqueue(respond(503), [.expectRequest, .reset])
    let session = session()
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/status/204"))
    #expect((response as? HTTPURLResponse)?.statusCode == 204)
    #expect(server.requestsReceived == 3)
  }

  @Test func aServerThatDoesNot() async throws {
    let session = session()
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/status/503"))
    #expect((response as? HTTPURLResponse)?.statusCode == 503 && server.requestsReceived == 3)
  }

  @Test func aServerThatBreaksConnections() async throws {
    let session = session()
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { try await session.data(from: url("/reset")) }
    #expect(error?.code == .networkConnectionLost && server.requestsReceived == 3)
  }

  /// A request that may have had an effect is sent once, unless the server can tell that it comes again.
  @Test func methods() async throws {
    let session = session()
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try url("/status/503"))
    request.httpMethod = "POST"
    request.httpBody = Data("body".utf8)
    _ = try await session.data(for: request)
    #expect(server.requestsReceived == 1)
    request.setValue("5", forHTTPHeaderField: "Idempotency-Key")
    _ = try await session.data(for: request)
    #expect(server.requests.map { $0.fields["Idempotency-Key"] } == [nil, "5", "5", "5"])
  }

  /// A delay that is longer than the limit is not waited for.
  @Test func aLongDelay() async throws {
    server.enqueue(respond(429, "Retry-After: 3600\r\n"))
    let session = session()
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/"))
    #expect((response as? HTTPURLResponse)?.statusCode == 429 && server.requestsReceived == 1)
  }

  /// Uploads of files to a server without resumable uploads are sent again as a whole.
  @Test(arguments: ["PUT", "POST"]) func uploadsOfFiles(method: String) async throws {
    var upload = TestServer.ResumableUpload()
    upload.versions = []
    let setting = try UploadSetting(count: 100, upload)
    setting.server.enqueue(respond(503), [.expectRequest, .reset])
    let session = session()
    defer { session.invalidateAndCancel() }
    var request = try setting.request("/anything", method: method)
    request.setValue(method == "POST" ? "key" : nil, forHTTPHeaderField: "Idempotency-Key")
    let (_, response) = try await session.upload(for: request, fromFile: setting.file)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(setting.server.requests.map(\.body) == Array(repeating: setting.bytes, count: 3))
  }

  /// An upload that the server can resume continues by its own rules, and sends no byte twice.
  @Test func anUploadContinues() async throws {
    var upload = TestServer.ResumableUpload()
    upload.faults = [.cut(afterBytes: 40), .status(503), .none]
    let setting = try UploadSetting(count: 100, upload)
    setting.server.enqueue(respond(503))
    let configuration = setting.configuration()
    var policy = URLSession.RetryPolicy.standard
    policy.rules.firstDelay = .zero
    policy.rules.repeatsAllMethods = true
    configuration.interceptors = [policy]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.upload(for: setting.request(), fromFile: setting.file)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    setting.expectWhole()
    #expect(setting.methods == ["POST", "POST", "HEAD", "HEAD", "PATCH"])
    #expect(setting.server.requests.last?.fields["Content-Length"] == "60")
  }

  /// All loads of a policy share its budget.
  @Test func theBudget() async throws {
    let session = session(URLSession.RetryPolicy(budget: .init(share: 0, reserve: 3)))
    defer { session.invalidateAndCancel() }
    for _ in 0..<5 { _ = try await session.data(from: url("/status/503")) }
    #expect(server.requestsReceived == 8)
  }

  /// A server that is not trusted is not asked again.
  @Test func trust() async throws {
    let secure = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    let session = session()
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: secure.url("/get")))
    let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
    #expect(error?.code == .serverCertificateUntrusted && secure.connectionsAccepted == 1)
  }
}
