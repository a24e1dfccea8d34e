import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Whatever a server does, a request has exactly one result, and the requests after it succeed.
@Suite(.timeLimit(.minutes(1))) struct HostileServerTests {
  @Test(arguments: HostileServer.all) func oneEnd(of hostile: HostileServer) async throws {
    let server = try TestServer()
    for script in hostile.scripts { server.enqueue(script) }
    server.route("*", "/*") { _ in .text("good") }
    if let always = hostile.always { server.route("*", "/*", script: [.send(always), .serveRoutes]) }
    server.route("*", "/good") { _ in .text("good") }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }

    #expect(try await end(of: hostile, at: server, in: session) == hostile.end)

    let (data, response) = try await session.data(from: try #require(URL(string: server.url("/good"))))
    #expect(String(decoding: data, as: UTF8.self) == "good")
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
  }

  /// A failed handshake fails the request, and the server never completes one.
  @Test(arguments: HostileServer.handshakes) func noHandshake(with hostile: HostileServer) async throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    for script in hostile.scripts { server.enqueue(script) }
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    #expect(try await end(of: hostile, at: server, in: session) == hostile.end)
    server.stop()
    #expect(server.handshakes.allSatisfy { $0.failure != nil })
  }

  /// A proxy's response is never taken for the origin's. CVE-2016-4643, CVE-2016-4644: a response that refuses CONNECT
  /// delivers neither a body nor cookies to the origin's request.
  @Test(arguments: HostileServer.proxies) func noTunnel(through hostile: HostileServer) async throws {
    let server = try TestServer()
    for script in hostile.scripts { server.enqueue(script) }
    if let always = hostile.always { server.defaultScript = [.repeat([.expectRequest, .send(always)])] }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [
      "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": server.port,
    ]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    #expect(try await end(of: hostile, at: "https://a.example/", in: session) == hostile.end)
    #expect(session.configuration.httpCookieStorage?.cookies?.isEmpty == true)
  }

  private func end(
    of hostile: HostileServer, at server: TestServer, in session: URLSession
  ) async throws -> HostileServer.Outcome {
    try await end(of: hostile, at: server.url("/"), in: session)
  }

  private func end(
    of hostile: HostileServer, at text: String, in session: URLSession
  ) async throws -> HostileServer.Outcome {
    let url = hostile.hasUser ? text.replacing("http://", with: "http://user:password@") : text
    var request = URLRequest(url: try #require(URL(string: url)), timeoutInterval: hostile.timeout)
    do {
      let (data, response): (Data, URLResponse)
      switch hostile.way {
      case .data: (data, response) = try await session.data(for: request)
      case .download:
        let (file, answer) = try await session.download(for: request)
        defer { try? FileManager.default.removeItem(at: file) }
        (data, response) = (try Data(contentsOf: file), answer)
      case .upload(let count):
        request.httpMethod = "POST"
        (data, response) = try await session.upload(for: request, from: Data(count: count))
      case .head:
        request.httpMethod = "HEAD"
        (data, response) = try await session.data(for: request)
      }
      let status = (response as? HTTPURLResponse)?.statusCode ?? 0
      return .response(status: status, body: String(decoding: data, as: UTF8.self))
    } catch let error as URLError {
      return .failure(error.code)
    }
  }
}
