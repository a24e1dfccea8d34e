import Foundation
import Larkspur
import Testing

/// Requests to an API like Docker's, on a Unix socket.
@Suite(.timeLimit(.minutes(1))) struct UnixServerTests {
  private let directory: URL
  private let server: PythonServer

  init() throws {
    directory = URL(filePath: "/tmp/larkspur-\(UInt64.random(in: 0...(.max)))")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    server = try PythonServer("Tests/LivePeers/unix_server.py", [directory.path + "/api.sock"])
  }

  @Test func requestsOfAnAPI() async throws {
    defer { try? FileManager.default.removeItem(at: directory) }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.hostOverrides.set("docker.example", to: .socket(path: directory.path + "/api.sock"))
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let (list, _) = try await session.data(
      from: try #require(URL(string: "http://docker.example/v1.41/containers/json?all=1")))
    let object = try #require(try JSONSerialization.jsonObject(with: list) as? [String: String])
    #expect(object == ["Host": "docker.example", "Path": "/v1.41/containers/json?all=1"])
    var request = URLRequest(url: try #require(URL(string: "http://docker.example/v1.41/containers/create")))
    request.httpMethod = "POST"
    let body = Data(#"{"Image":"alpine"}"#.utf8)
    let (echo, response) = try await session.upload(for: request, from: body)
    #expect(echo == body && (response as? HTTPURLResponse)?.statusCode == 201)
    var lines: [String] = []
    let (bytes, _) = try await session.bytes(
      from: try #require(URL(string: "http://docker.example/v1.41/containers/1/logs")))
    for try await line in bytes.lines { lines.append(line) }
    #expect(lines == ["one", "two"])
  }
}
