import Glibc
import Larkspur
import LarkspurTLS
import LarkspurTestServer
import TestKit
import Testing

/// Tests the downloads of `larkspur get` in pieces, from mirrors, with checksums and of lists.
@Suite struct GetDownloadsTests {
  let server: TestServer
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func get(_ arguments: String..., input: String = "", errors: Command.Stream = .collected) async throws
    -> Command.Result
  {
    try await Command(["get"] + arguments, errors: errors, directory: directory.path).end(input: Array(input.utf8))
  }

  private static func hash(_ count: Int) -> String {
    SHA256Digest.of(TestServer.content(count: count)).map { byte in
      let digits = String(byte, radix: 16)
      return digits.utf8.count == 1 ? "0" + digits : digits
    }.joined()
  }

  private func serve(_ text: String, at path: String) {
    server.route("GET", path) { _ in .text(text) }
  }

  // MARK: - One file

  @Test func pieces() async throws {
    let count = 5_000_000
    let result = try await get(
      server.url("/range/\(count)"), "-x", "3", "-O", "--checksum", "sha256:\(Self.hash(count))")
    #expect(result.status == 0 && result.errors == "" && result.output == [], "\(result.errors)")
    #expect(try directory.bytes(of: "\(count)") == TestServer.content(count: count))
    #expect(directory.names == ["\(count)"])
    #expect(server.requests.first?.fields["Range"] == "bytes=0-")
    #expect(server.requests.allSatisfy { $0.fields["User-Agent"] == "larkspur/unreleased" })
    // The file has the checksum already.
    let requests = server.requestsReceived
    let again = try await get(server.url("/range/\(count)"), "-O", "--checksum", "sha256:\(Self.hash(count))")
    #expect(again.status == 0 && server.requestsReceived == requests, "\(again.errors)")
  }

  /// Wrong bytes never get the file's name.
  @Test func aWrongChecksum() async throws {
    let result = try await get(
      server.url("/range/1000"), "-o", "file", "--checksum", "sha256:\(Self.hash(999))", "--retry", "0")
    #expect(result.status == 114 && result.errors.contains("checksum"), "\(result.errors)")
    #expect(!directory.names.contains("file"))
  }

  @Test func aFileThatCannotBe() async throws {
    for name in ["none/file", "."] {
      let result = try await get(server.url("/range/10"), "-x2", "-o", name)
      #expect(result.status == (name == "." ? 2 : 23) && result.errors.hasPrefix("larkspur: "), "\(result.errors)")
    }
    #expect(server.connectionsAccepted == 0 && directory.names == [])
  }

  @Test func mirrors() async throws {
    let other = try TestServer()
    let result = try await get(
      server.url("/status/404"), "--mirror", other.url("/range/1000"), "--mirror", other.url("/status/500"), "-o",
      "file",
      "--retry", "0")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try directory.bytes(of: "file") == TestServer.content(count: 1000))
    #expect(try await get(server.url("/status/404"), "-x1", "-o", "none").status == 22)
    // A password is not sent to a server that it is not for.
    for arguments in [["-u", "a:b"], ["-b", "a=b"], ["-H", "Authorization: x"]] {
      let result = try await Command(
        ["get", server.url("/range/9"), "--mirror", other.url("/range/9"), "-o", directory.path("x")] + arguments
      ).end()
      #expect(result.status == 2 && result.errors.contains("are for one server"), "\(result.errors)")
    }
    #expect(other.requests.allSatisfy { $0.fields["Authorization"] == nil && $0.fields["Cookie"] == nil })
  }

  @Test func checksumsOfAServer() async throws {
    serve("\(Self.hash(10))  10\n\(Self.hash(20)) *dir/20\n\(Self.hash(10))  30\n", at: "/SHA256SUMS")
    let sums = server.url("/SHA256SUMS")
    #expect(try await get(server.url("/range/10"), "-O", "--checksum-from", sums).status == 0)
    #expect(try await get(server.url("/range/20"), "-o", "twenty", "--checksum-from", sums).status == 0)
    #expect(try await get(server.url("/range/30"), "-O", "--checksum-from", sums, "--retry", "0").status == 114)
    let missing = try await get(server.url("/range/40"), "-O", "--checksum-from", sums)
    #expect(missing.status == 114 && missing.errors == "larkspur: \(sums): it has no checksum of 40\n")
    #expect(try await get(server.url("/range/40"), "-O", "--checksum-from", server.url("/status/404")).status == 22)
    #expect(directory.names.filter { !$0.contains(".") } == ["10", "twenty"])
    #expect(!server.requests.contains { $0.target == "/range/40" })
  }

  // MARK: - Lists

  @Test func list() async throws {
    let list = """
      # two files
      \(server.url("/range/1000"))  sha256=\(Self.hash(1000))

      \(server.url("/range/2000"))  out=two
      """
    try directory.write(list, to: "list")
    mkdir(directory.path("there"), 0o755)
    let result = try await get("-i", "list", "--output-dir", "there", "-Z", "2")
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      Set(result.errors.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") })
        == ["1000 1000 B", "two 2.0 KiB"])
    #expect(try directory.bytes(of: "there/1000") == TestServer.content(count: 1000))
    #expect(try directory.bytes(of: "there/two") == TestServer.content(count: 2000))
    #expect(try await get("-i", "-", "-s", input: list).errors == "")
    #expect(directory.names == ["1000", "list", "there", "two"])
  }

  /// A failure does not stop the other files, and the first one in the list determines the status.
  @Test func oneFailureInAList() async throws {
    let list = """
      \(server.url("/range/1"))
      \(server.url("/status/404"))  out=none
      \(server.url("/range/2"))  sha256=\(Self.hash(3))
      \(server.url("/range/4"))
      """
    let result = try await get("--input-file", "-", "-Z1", "--retry", "0", input: list)
    #expect(result.status == 22, "\(result.errors)")
    #expect(result.errors.split(separator: "\n").count { $0.hasPrefix("larkspur: ") } == 2, "\(result.errors)")
    #expect(directory.names.filter { !$0.contains(".") } == ["1", "4"])
  }

  @Test func aListThatIsRefused() async throws {
    let list = "\(server.url("/range/1"))\n\(server.url("/range/2"))  out=../two\nftp://x/y\n"
    let result = try await get("-i", "-", input: list)
    let lines = result.errors.split(separator: "\n")
    #expect(result.status == 2 && lines.count == 2, "\(result.errors)")
    #expect(lines.first?.hasPrefix("larkspur: standard input:2: out=../two: ") == true)
    #expect(lines.last?.hasPrefix("larkspur: standard input:3: ftp:// is not supported") == true)
    #expect(server.connectionsAccepted == 0)
    #expect(try await get("--input-file", "none").status == 26)
    let own = try await get("-i", "-", input: "\(server.url("/range/1"))\n\(server.url("/1.larkspur-part"))\n")
    #expect(own.status == 2 && own.errors.contains("1.larkspur-part"), "\(own.errors)")
    #expect(server.connectionsAccepted == 0)
  }

  @Test func aTerminalHasALineForEachFile() async throws {
    let list = "\(server.url("/range/1000"))\n\(server.url("/range/2000"))\n"
    try directory.write(list, to: "list")
    let result = try await get("-i", "list", errors: .terminal)
    #expect(result.status == 0)
    #expect(result.errors.contains("2 of 2 files"), "\(result.errors)")
    #expect(result.errors.contains("1000 B"))
  }
}
