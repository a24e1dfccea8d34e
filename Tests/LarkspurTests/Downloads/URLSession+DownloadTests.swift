import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// Downloads in pieces by a session. The client's tests have all that does not depend on the session.
@Suite(.timeLimit(.minutes(1))) struct SessionDownloadTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private static let total = 1_000_000
  private static let content = Data(TestServer.content(count: total))

  private func plan(_ path: String = "/range/\(total)") throws -> DownloadPlan {
    var plan = DownloadPlan(try #require(URL(string: server.url(path))), to: directory.file("a file"))
    plan.smallestPiece = 50_000
    plan.retry.firstDelay = .milliseconds(1)
    return plan
  }

  private func file() -> Data? { FileManager.default.contents(atPath: directory.path("a file")) }

  private func error(of download: Download) async -> DownloadError? {
    do {
      _ = try await download.value
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [1, 4]) func aWholeFile(connections: Int) async throws {
    var plan = try plan()
    plan.connections = connections
    let result = try await URLSession(configuration: .ephemeral).download(plan).value
    #expect(result.url == directory.file("a file") && result.size == Self.total && result.received == Self.total)
    #expect(file() == Self.content)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.url.path) == ["a file"])
    #expect(connections == 1 ? server.requests.count == 1 : server.requests.count > 1)
    #expect(server.requests.allSatisfy { $0.fields.values("Accept-Encoding") == ["identity"] })
  }

  /// The names `download(for:)` and `download(from:)` still have their meaning.
  @Test func mirrorsAndOtherDownloads() async throws {
    let session = URLSession(configuration: .ephemeral)
    let urls = try ["/status/404", "/range/\(Self.total)"].map { try #require(URL(string: server.url($0))) }
    _ = try await session.download(DownloadPlan(urls, to: directory.file("a file"))).value
    #expect(file() == Self.content)
    let (other, _) = try await session.download(from: urls[1])
    defer { try? FileManager.default.removeItem(at: other) }
    #expect(try Data(contentsOf: other) == Self.content)
  }

  /// The session limits the number of requests at once.
  @Test func theSessionsSettings() async throws {
    server.route("GET", "/file") { request in
      var response = TestServer.Response.content(count: Self.total)
      response.fields["Set-Cookie"] = "name=value"
      response.closesConnection = true
      response.fields["Content-Length"] = "\(Self.total)"
      response.fields["ETag"] = "\"1\""
      guard request.fields["Cookie"] != nil else {
        response.body = .content(0..<1_000)
        return response
      }
      let first = request.fields["Range"].flatMap { Int($0.dropFirst("bytes=".count).prefix { $0 != "-" }) } ?? 0
      response.status = 206
      response.fields["Content-Range"] = "bytes \(first)-\(Self.total - 1)/\(Self.total)"
      response.fields["Content-Length"] = nil
      response.body = .content(first..<Self.total)
      return response
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-One": "1"]
    configuration.httpMaximumConnectionsPerHost = 1
    var plan = try plan("/file")
    plan.setValue("2", forHTTPHeaderField: "X-Two")
    _ = try await URLSession(configuration: configuration).download(plan).value
    #expect(file() == Self.content)
    #expect(server.requests.allSatisfy { $0.fields["X-One"] == "1" && $0.fields["X-Two"] == "2" })
    #expect(server.requests.map { $0.fields["Cookie"] } == [nil, "name=value"])
    #expect(server.requests.last?.fields["Range"] == "bytes=1000-\(Self.total - 1)")
  }

  @Test func theCacheHasNoPart() async throws {
    server.route("GET", "/file") { _ in
      var response = TestServer.Response.content(count: 1_000)
      response.fields["Cache-Control"] = "max-age=1000"
      return response
    }
    let configuration = URLSessionConfiguration.ephemeral
    let cache = URLCache(memoryCapacity: 10 << 20, diskCapacity: 0, diskPath: nil)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    for _ in 0..<2 { _ = try await session.download(plan("/file")).value }
    #expect(server.requests.count == 2)
    #expect(cache.currentMemoryUsage == 0)
  }

  @Test func aCodedBodyStaysCoded() async throws {
    server.route("GET", "/file") { _ in
      TestServer.Response(fields: ["Content-Encoding": "gzip", "ETag": "\"1\""], body: .text("no gzip at all"))
    }
    _ = try await URLSession(configuration: .ephemeral).download(plan("/file")).value
    #expect(file() == Data("no gzip at all".utf8))
  }

  @Test func theErrorOfTheSession() async throws {
    var plan = try plan()
    plan.urls = ["http://127.0.0.1:1/"]
    plan.retry.attemptsMax = 1
    let error = try #require(await error(of: URLSession(configuration: .ephemeral).download(plan)))
    #expect(error.code == .requestFailed && (error.underlying as? URLError)?.code == .cannotConnectToHost)
    #expect(error.localizedDescription == error.description && error.description.contains("http://127.0.0.1:1/"))
  }

  @Test func aFileHasToBeAFile() async throws {
    let url = try #require(URL(string: server.url("/")))
    let error = await error(of: URLSession(configuration: .ephemeral).download(DownloadPlan(url, to: url)))
    #expect(error?.code == .invalidPlan && error?.reason.hasPrefix("destination") == true)
  }

  @Test func aSessionThatEnds() async throws {
    server.route("GET", "/file") { _ in
      TestServer.Response(
        fields: ["ETag": "\"1\"", "Accept-Ranges": "bytes"],
        body: .stream(count: 10) { try $0.pause(.seconds(120)) })
    }
    let session = URLSession(configuration: .ephemeral)
    let download = session.download(try plan("/file"))
    try await server.waitForRequests(1)
    session.invalidateAndCancel()
    let error = await error(of: download)
    #expect(error?.code == .requestFailed && (error?.underlying as? URLError)?.code == .cancelled)
  }

  @Test func aCancelledDownloadEndsItsRequests() async throws {
    server.route("GET", "/file") { _ in
      TestServer.Response(
        fields: ["ETag": "\"1\"", "Accept-Ranges": "bytes"],
        body: .stream(count: 1_000) { writer in
          try writer.write([1, 2, 3])
          try writer.pause(.seconds(120))
        })
    }
    let download = URLSession(configuration: .ephemeral).download(try plan("/file"))
    for try await bytes in download.bytes {
      #expect(bytes == [1, 2, 3])
      break
    }
    download.cancel()
    #expect(await error(of: download)?.code == .cancelled)
    try await server.waitForClosedConnections(1)
  }

  /// A killed process fetches nothing again that it had synced.
  @Test func aKilledProcessIsContinued() async throws {
    server.route("GET", "/file") { request in
      var response = TestServer.Response(fields: ["ETag": "\"1\"", "Accept-Ranges": "bytes"])
      if let range = request.fields["Range"], request.fields["If-Range"] == "\"1\"" {
        let first = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }) ?? 0
        response.status = 206
        response.fields["Content-Range"] = "bytes \(first)-\(Self.total - 1)/\(Self.total)"
        response.body = .content(first..<Self.total)
      } else {
        response.body = .stream(count: Self.total) { writer in
          try writer.write(TestServer.content(count: 500_000))
          try writer.pause(.seconds(120))
        }
      }
      return response
    }
    let process = try SiblingProcess("session", ["pieces", server.url("/file"), directory.path("a file")])
    // The last bytes need not be synced before others follow.
    #expect(process.wait(for: "kept"))
    process.kill()
    var plan = try plan("/file")
    plan.connections = 1
    let result = try await URLSession(configuration: .ephemeral).download(plan).value
    #expect(file() == Self.content)
    let first = Self.total - result.received
    #expect((490_000...500_000).contains(first))
    #expect(server.requests.map { $0.fields["Range"] } == [nil, "bytes=\(first)-\(Self.total - 1)"])
  }
}
