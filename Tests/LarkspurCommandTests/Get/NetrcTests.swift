import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests `--netrc` and `--netrc-file`.
@Suite struct NetrcTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
    try directory.write(
      "machine 127.0.0.1 login me password secret\nmachine localhost login no password no\n", to: ".netrc")
    chmod(directory.path(".netrc"), 0o600)
  }

  private func authorization(_ arguments: String...) async throws -> String? {
    let result = try await Command(["get"] + arguments, environment: ["HOME": directory.path]).end()
    try #require(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
    return server.requests.last?.fields["Authorization"]
  }

  /// `me:secret`
  private static let own = "Basic bWU6c2VjcmV0"

  @Test func theHostsOwn() async throws {
    #expect(try await authorization(server.url("/get")) == nil)
    #expect(try await authorization(server.url("/get"), "-n") == Self.own)
    #expect(try await authorization(server.url("/get"), "--netrc-file", directory.path(".netrc")) == Self.own)
    #expect(try await authorization(server.url("/redirect/1"), "-nL") == Self.own)
    // Options and the URL come first.
    #expect(try await authorization(server.url("/get"), "-n", "-u", "a:b") == "Basic YTpi")
    #expect(try await authorization(server.url("/get"), "-n", "--oauth2-bearer", "t") == "Bearer t")
    #expect(try await authorization(server.url("/get"), "-n", "-H", "Authorization: x") == "x")
    #expect(try await authorization("http://a:b@\(server.authority)/get", "-n") == "Basic YTpi")
  }

  @Test func noOtherServer() async throws {
    let other = try TestServer()
    _ = try await authorization(server.url("/redirect-to?url=\(other.url("/anything"))"), "-nL")
    #expect(server.requests.last?.fields["Authorization"] == Self.own)
    #expect(other.requests.map { $0.fields["Authorization"] } == [nil])
  }

  @Test func files() async throws {
    #expect(
      try await Command(["get", server.url("/get"), "-n"], environment: ["HOME": "/nonexistent"]).end().status == 0)
    let missing = try await Command.run("get", server.url("/get"), "--netrc-file", directory.path("none"))
    #expect(missing.status == 26 && missing.errors.contains(directory.path("none")))
    try directory.write("machine a login \"secret", to: "broken")
    let broken = try await Command.run("get", server.url("/get"), "--netrc-file", directory.path("broken"))
    #expect(broken.status == 26 && broken.errors.contains("line 1: the closing quote is missing"))
    #expect(!broken.errors.contains("secret"))
    chmod(directory.path(".netrc"), 0o644)
    let open = try await Command.run("get", server.url("/get"), "--netrc-file", directory.path(".netrc"))
    #expect(
      open.status == 0
        && open.errors == "larkspur: warning: others can read the passwords in \(directory.path(".netrc"))\n")
  }
}
