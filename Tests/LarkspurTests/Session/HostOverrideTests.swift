import Foundation
import Larkspur
import LarkspurTestServer
import LarkspurTransport
import Testing

@Suite(.timeLimit(.minutes(1))) struct HostOverrideTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func session(_ change: (inout HostOverrides) -> Void, proxy: TestServer? = nil) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    change(&configuration.hostOverrides)
    configuration.connectionProxyDictionary =
      proxy.map { ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": Int($0.port)] } ?? [:]
    return URLSession(configuration: configuration)
  }

  private func get(_ url: String, _ session: URLSession) async throws {
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: try #require(URL(string: url)))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
  }

  /// The request keeps the URL's host, wherever it goes.
  @Test func otherAddresses() async throws {
    try await get(
      "http://a.invalid:\(server.port)/get", session { $0.set("a.invalid", to: .addresses(["127.0.0.1"])) })
    try await get("http://a.invalid/get", session { $0.set("*", to: .host("127.0.0.1", port: UInt16(server.port))) })
    #expect(server.requests.map { $0.fields["Host"] } == ["a.invalid:\(server.port)", "a.invalid"])
  }

  /// A proxy opens a tunnel to the other host, also for a request without TLS.
  @Test func anotherHostThroughAProxy() async throws {
    server.defaultScript = [.expectRequest, .send("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n")]
    let session = session({ $0.set("a.invalid", to: .host("b.invalid", port: 8080)) }, proxy: server)
    let error = await #expect(throws: URLError.self) { try await get("http://a.invalid/", session) }
    #expect(error?.code == .cannotConnectToHost)
    #expect(server.requests.map(\.target) == ["b.invalid:8080"])
  }

  @Test(
    arguments: [.socket(path: "/" + String(repeating: "s", count: 199)), .addresses([]), .host("")]
      as [HostOverrides.Place])
  func aUselessOverrideFailsItsHostOnly(place: HostOverrides.Place) async throws {
    let session = session { $0.set("a.invalid", to: place) }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.data(from: try #require(URL(string: "http://a.invalid:\(server.port)/")))
    }
    #expect(error?.code == .cannotConnectToHost)
    #expect(error?.localizedDescription.contains("hostOverrides") == true)
    try await get(server.url("/get"), session)
  }
}
