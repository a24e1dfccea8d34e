import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests `--dangerously-log-keys` and `SSLKEYLOGFILE`.
@Suite struct TLSKeyLogTests {
  private func permissions(of path: String) -> mode_t? {
    var facts = stat()
    return lstat(path, &facts) == 0 ? facts.st_mode & 0o777 : nil
  }

  private func warning(_ file: String) -> String {
    "larkspur: warning: --dangerously-log-keys: whoever can read \(file) can read what is sent and received\n"
  }

  @Test(
    arguments: [(.tls1_2, "CLIENT_RANDOM"), (.tls1_3, "CLIENT_HANDSHAKE_TRAFFIC_SECRET")]
      as [(TestServer.TLS.Version, String)])
  func logged(version: TestServer.TLS.Version, label: String) async throws {
    let server = try TLSServer { $0.versions = version...version }
    let file = server.directory.path("keys")
    let environment = ["SSLKEYLOGFILE": file]
    let arguments = server.trust + ["--dangerously-log-keys"]
    let first = try await server.get(arguments, environment: environment)
    #expect(first.status == 0)
    #expect(first.errors == warning(file))
    #expect(permissions(of: file) == 0o600)
    let lines = try server.directory.text(of: "keys").split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.last == "")
    #expect(lines.contains { $0.hasPrefix(label + " ") })
    #expect(lines.dropLast().allSatisfy { $0.wholeMatch(of: /[A-Z0-9_]+ [0-9a-f]{64} [0-9a-f]{64,}/) != nil })
    // The second command appends to the file.
    let second = try await server.pins(arguments, environment: environment)
    #expect(second.status == 0)
    #expect(second.errors == warning(file))
    let all = try server.directory.text(of: "keys").split(separator: "\n", omittingEmptySubsequences: false)
    #expect(all.starts(with: lines.dropLast()))
    #expect(all.count { $0.hasPrefix(label + " ") } == 2)
    #expect(permissions(of: file) == 0o600)
  }

  /// The keys of a server that a redirection leads to are logged, too.
  @Test func keysBehindARedirection() async throws {
    let server = try TLSServer()
    let plain = try TestServer()
    let target = server.server.url("/bytes/9")
    plain.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": target]) }
    let file = server.directory.path("keys")
    let result = try await Command(
      ["get", plain.url("/moved"), "-L", "--dangerously-log-keys"] + server.trust, environment: ["SSLKEYLOGFILE": file]
    ).end()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors == warning(file))
    #expect(try server.directory.text(of: "keys").contains("CLIENT_"))
  }

  @Test func notAskedFor() async throws {
    let server = try TLSServer()
    let environment = ["SSLKEYLOGFILE": server.directory.path("keys")]
    server.expectSuccess(try await server.get(server.trust, environment: environment))
    let pins = try await server.pins(server.trust, environment: environment)
    #expect(pins.status == 0)
    #expect(pins.errors == "")
    #expect(server.directory.names == ["root.pem"])
  }

  @Test(arguments: [[:], ["SSLKEYLOGFILE": ""]]) func noFile(environment: [String: String]) async throws {
    let server = try TLSServer()
    let result = try await server.get(server.trust + ["--dangerously-log-keys"], environment: environment)
    #expect(result.status == 0)
    #expect(
      result.errors
        == "larkspur: warning: --dangerously-log-keys: SSLKEYLOGFILE names no file; nothing is logged\n")
  }

  /// A file that other users can access is refused, since its secrets decrypt the connections.
  @Test func filesThatAreNotForItsOwnerAlone() async throws {
    let server = try TLSServer()
    let directory = server.directory
    try directory.write("old\n", to: "own")
    #expect(chmod(directory.path("own"), 0o600) == 0)
    for (mode, name) in [(0o640, "group"), (0o604, "others"), (0o622, "writable")] as [(mode_t, String)] {
      try directory.write("old\n", to: name)
      #expect(chmod(directory.path(name), mode) == 0)
    }
    #expect(symlink(directory.path("own"), directory.path("link")) == 0)
    #expect(mkfifo(directory.path("pipe"), 0o600) == 0)
    let reader = open(directory.path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    for (name, message) in [
      ("group", "others have access to it"), ("others", "others have access to it"),
      ("writable", "others have access to it"), ("link", "it is a symbolic link"), ("pipe", "it is no regular file"),
      ("none/keys", "No such file or directory"),
    ] {
      let file = directory.path(name)
      let result = try await server.get(
        server.trust + ["--dangerously-log-keys"], environment: ["SSLKEYLOGFILE": file])
      #expect(result.status == 23)
      #expect(
        result.errors
          == warning(file) + "larkspur: cannot set up TLS: the keys cannot be logged (\(file): \(message))\n")
    }
    for name in ["own", "group", "others", "writable"] { #expect(try directory.text(of: name) == "old\n") }
    #expect(server.server.connectionsAccepted == 0)
  }

  /// A named pipe without a reader is an error and does not block the command.
  @Test func pipeWithoutAReader() async throws {
    let server = try TLSServer()
    #expect(mkfifo(server.directory.path("pipe"), 0o600) == 0)
    let result = try await server.get(
      server.trust + ["--dangerously-log-keys"], environment: ["SSLKEYLOGFILE": server.directory.path("pipe")])
    #expect(result.status == 23)
  }

  @Test func fileThatIsThereAlready() async throws {
    let server = try TLSServer()
    try server.directory.write("old\n", to: "own")
    #expect(chmod(server.directory.path("own"), 0o600) == 0)
    let result = try await server.get(
      server.trust + ["--dangerously-log-keys"], environment: ["SSLKEYLOGFILE": server.directory.path("own")])
    #expect(result.status == 0)
    let lines = try server.directory.text(of: "own").split(separator: "\n")
    #expect(lines.first == "old" && lines.count > 1)
  }
}
