import LarkspurTestServer
import TestKit
import Testing

/// Tests URLs that stand for several.
@Suite struct GetEachTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ path: String, _ arguments: String..., input: [UInt8] = []) async throws -> Command.Result {
    try await Command(["get", server.url(path)] + arguments).end(input: input)
  }

  @Test func aFileForEach() async throws {
    let result = try await get(
      "/bytes/{3,5}?[1-2]", "-o", directory.path("n#1-#2"), "-w", #"%{url} %{size_download}\n"#)
    #expect(result.status == 0, "\(result.errors)")
    #expect(directory.names == ["n3-1", "n3-2", "n5-1", "n5-2"])
    #expect(try directory.bytes(of: "n5-2") == TestServer.content(count: 5))
    #expect(
      result.text.split(separator: "\n").map(String.init)
        == ["3?1 3", "3?2 3", "5?1 5", "5?2 5"].map { server.url("/bytes/\($0)") })
  }

  /// A failure does not stop the others, and a success does not hide it.
  @Test func theFirstFailureDecides() async throws {
    let result = try await get("/status/{200,404,200}", "-f", "-o", "/dev/null")
    #expect(result.status == 22)
    #expect(server.requests.map(\.target) == ["/status/200", "/status/404", "/status/200"])
  }

  @Test func asItIs() async throws {
    #expect(try await get("/get?a={1,2}[3]", "-g").status == 0)
    #expect(server.requests.map(\.target) == ["/get?a=%7B1,2%7D[3]"])
  }

  /// What would be overwritten or read twice is refused before the first request.
  @Test func refusals() async throws {
    for option in [["-o", "x"], ["-D", "x"], ["--har", "x"], ["-c", "x"], ["-d", "@-"], ["-F", "a=@-"]] {
      let result = try await Command(["get", server.url("/{a,b}")] + option, directory: directory.path).end()
      #expect(result.status == 2, "\(option)")
    }
    let remote = try await Command(["get", server.url("/{a,b}/x"), "-O"], directory: directory.path).end()
    #expect(remote.status == 2)
    #expect(try await get("/{a,b}[1-2]", "-o", directory.path("#2")).status == 2)
    #expect(try await get("/[5-1]").status == 3)
    #expect(server.connectionsAccepted == 0)
    #expect(directory.names.isEmpty)
  }
}
