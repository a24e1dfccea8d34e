import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A session and httpbin.
@Suite(.serialized, .ownThread) struct HTTPBinTests {
  private let bin: HTTPBin
  private let session = URLSession(configuration: .ephemeral)

  init() throws { bin = try HTTPBin() }

  private func request(_ method: String, _ path: String, body: Data? = nil) throws -> URLRequest {
    var request = URLRequest(url: try bin.url(path))
    request.httpMethod = method
    request.httpBody = body
    return request
  }

  /// httpbin's description of a request.
  private struct Echo: Decodable {
    var args: [String: String]?
    var headers: [String: String]?
    var url: String?
    var data: String?
    var form: [String: String]?
    var cookies: [String: String]?
    var authenticated: Bool?
    var gzipped: Bool?
    var deflated: Bool?
  }

  private func echo(
    _ request: URLRequest, in session: URLSession? = nil, delegate: SessionRecorder? = nil
  ) async throws -> Echo {
    let loaded = try await (session ?? self.session).load(request, delegate: delegate)
    try #require(loaded.status == 200, "\(request.url?.path ?? ""): \(loaded.status)")
    return try JSONDecoder().decode(Echo.self, from: loaded.data)
  }

  @Test func get() async throws {
    var request = try request("GET", "/get?name=a%20value&other=%C3%BC")
    request.setValue("yes", forHTTPHeaderField: "X-Larkspur")
    let echo = try await echo(request)
    #expect(echo.args == ["name": "a value", "other": "\u{fc}"])
    #expect(echo.headers?["X-Larkspur"] == "yes")
    #expect(echo.headers?["Host"] == "127.0.0.1:\(bin.port)")
  }

  @Test func bodies() async throws {
    let form = try await echo(request("POST", "/post", body: Data("a=1&b=two+words".utf8)))
    #expect(form.form == ["a": "1", "b": "two words"])
    for method in ["PUT", "PATCH", "DELETE"] {
      var request = try request(method, "/\(method.lowercased())", body: Data("{\"a\":[1,2]}".utf8))
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      let echo = try await echo(request)
      #expect(echo.data == "{\"a\":[1,2]}")
      #expect(echo.headers?["Content-Type"] == "application/json")
      #expect(echo.headers?["Content-Length"] == "11")
    }
  }

  @Test(arguments: [200, 204, 304, 400, 404, 418, 429, 500, 503]) func status(_ status: Int) async throws {
    #expect(try await session.load(bin.url("/status/\(status)")).status == status)
  }

  @Test(arguments: ["/redirect/5", "/relative-redirect/3", "/absolute-redirect/3"])
  func redirect(path: String) async throws {
    let loaded = try await session.load(bin.url(path))
    #expect(loaded.status == 200)
    #expect(loaded.response.url?.path == "/get")
  }

  @Test(arguments: [301, 302, 303, 307, 308]) func redirectedPost(status: Int) async throws {
    let body = Data("kept".utf8)
    let loaded = try await session.load(
      request("POST", "/redirect-to?url=%2Fanything&status_code=\(status)", body: body))
    struct Anything: Decodable {
      var method: String
    }
    let keeps = status >= 307
    #expect(try JSONDecoder().decode(Anything.self, from: loaded.data).method == (keeps ? "POST" : "GET"))
    #expect(String(decoding: loaded.data, as: UTF8.self).contains("kept") == keeps)
  }

  @Test func basicAuthorization() async throws {
    let recorder = SessionRecorder("wrong", "secret")
    #expect(try await echo(request("GET", "/basic-auth/me/secret"), delegate: recorder).authenticated == true)
    #expect(recorder.challenges.withLock { $0.map(\.failures) } == [0, 1])
    // `hidden-basic-auth` sends no challenge: a client has to send its credentials unasked.
    #expect(try await session.load(bin.url("/hidden-basic-auth/me/secret"), delegate: recorder).status == 404)
  }

  @Test(arguments: ["MD5", "SHA-256"], ["auth", "auth-int"])
  func digestAuthorization(algorithm: String, protection: String) async throws {
    let recorder = SessionRecorder("wrong", "secret")
    let path = "/digest-auth/\(protection)/me/secret/\(algorithm)"
    #expect(try await echo(request("GET", path), delegate: recorder).authenticated == true)
    #expect(recorder.challenges.withLock { $0.map(\.method) }.last == NSURLAuthenticationMethodHTTPDigest)
    #expect(recorder.challenges.withLock { $0.map(\.failures) } == [0, 1])
  }

  /// A nonce that is good for two requests becomes stale after them, and is renewed without a question to the delegate.
  @Test func staleNonces() async throws {
    let recorder = SessionRecorder("secret")
    for _ in 0..<6 {
      let echo = try await echo(request("GET", "/digest-auth/auth/me/secret/MD5/2"), delegate: recorder)
      #expect(echo.authenticated == true)
    }
    #expect(recorder.challenges.withLock { $0.count } == 1)
  }

  /// RFC 7616 6.1 has no SHA-512: a challenge with an unknown algorithm is ignored (3.3), and its response is
  /// delivered.
  @Test(arguments: ["auth", "auth-int"]) func anUnknownAlgorithm(protection: String) async throws {
    let recorder = SessionRecorder("secret")
    let loaded = try await session.load(bin.url("/digest-auth/\(protection)/me/secret/SHA-512"), delegate: recorder)
    #expect(loaded.status == 401)
    #expect(recorder.challenges.withLock { $0.count } == 0)
  }

  @Test func codings() async throws {
    #expect(try await echo(request("GET", "/gzip")).gzipped == true)
    #expect(try await echo(request("GET", "/deflate")).deflated == true)
  }

  @Test func cookies() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    let session = URLSession(configuration: configuration)
    #expect(try await echo(request("GET", "/cookies/set?a=1&b=two"), in: session).cookies == ["a": "1", "b": "two"])
    #expect(try await echo(request("GET", "/cookies/set/c/3"), in: session).cookies?.count == 3)
    #expect(try await echo(request("GET", "/cookies/delete?a"), in: session).cookies == ["b": "two", "c": "3"])
    #expect(configuration.httpCookieStorage?.cookies?.map(\.name).sorted() == ["b", "c"])
    // Another session has another jar.
    #expect(try await echo(request("GET", "/cookies")).cookies == [:])
  }

  @Test func streams() async throws {
    let (bytes, _) = try await session.bytes(from: bin.url("/stream/20"))
    var count = 0
    for try await byte in bytes where byte == UInt8(ascii: "\n") { count += 1 }
    #expect(count == 20)
    // httpbin's `/bytes` returns a type that gunicorn does not accept, and sends nothing. Its threads share one random
    // generator, so that the bytes of a seed depend on other requests.
    #expect(try await session.load(bin.url("/stream-bytes/10000?seed=1&chunk_size=100")).data.count == 10_000)
  }

  @Test func ranges() async throws {
    var request = try request("GET", "/range/1000")
    let whole = try await session.load(request).data
    request.setValue("bytes=100-199", forHTTPHeaderField: "Range")
    let part = try await session.load(request)
    #expect(part.status == 206)
    #expect(part.data == whole[100..<200])
  }

  // MARK: - The cache

  /// Returns the sources and statuses of the latest load's transactions.
  private func sources(_ path: String, in session: URLSession) async throws -> [Source] {
    let delegate = MetricsRecorder()
    let loaded = try await session.load(bin.url(path), delegate: delegate)
    #expect(loaded.status == 200)
    return delegate.metrics.withLock { $0 }?.transactionMetrics.map {
      Source(kind: $0.resourceFetchType, status: ($0.response as? HTTPURLResponse)?.statusCode ?? 0)
    } ?? []
  }

  private struct Source: Equatable {
    var kind: URLSessionTaskMetrics.ResourceFetchType
    var status: Int

    static let network = Source(kind: .networkLoad, status: 200)
    static let cache = Source(kind: .localCache, status: 200)
    static let unmodified = Source(kind: .networkLoad, status: 304)
  }

  private func cachingSession() -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    return URLSession(configuration: configuration)
  }

  @Test func freshResponses() async throws {
    let session = cachingSession()
    for path in ["/cache/600", "/response-headers?Cache-Control=max-age%3D600&X-Tag=one"] {
      #expect(try await sources(path, in: session) == [.network])
      #expect(try await sources(path, in: session) == [.cache])
    }
    for _ in 0..<2 { #expect(try await sources("/get", in: session) == [.network]) }
  }

  /// `/cache` and `/etag` answer conditional requests with 304, which the caller does not see.
  @Test func validatedResponses() async throws {
    let session = cachingSession()
    for path in ["/cache", "/etag/a-tag"] {
      #expect(try await sources(path, in: session) == [.network])
      #expect(try await sources(path, in: session) == [.unmodified, .cache], "\(path)")
    }
    var request = try request("GET", "/etag/a-tag")
    request.setValue("\"a-tag\"", forHTTPHeaderField: "If-None-Match")
    #expect(try await session.load(request).status == 304)
    request.setValue(nil, forHTTPHeaderField: "If-None-Match")
    request.setValue("\"another\"", forHTTPHeaderField: "If-Match")
    #expect(try await session.load(request).status == 412)
  }
}
