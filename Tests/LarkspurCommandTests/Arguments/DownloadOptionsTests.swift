import Larkspur
import LarkspurIO
import TestKit
import Testing

@testable import LarkspurCommand

@Suite struct DownloadOptionsTests {
  private func options(_ arguments: String...) throws -> GetOptions {
    guard case .get(let options) = try Invocation(parsing: (["get"] + arguments)[...]) else {
      throw UsageError("no get")
    }
    return options
  }

  /// A number is no proxy: `-x N` is that of connections.
  @Test func connections() throws {
    #expect(try options("h/x", "-x8", "-o", "f").downloads.connections == 8)
    let both = try options("h/x", "-x", "p:1", "-x", "16", "-O")
    #expect(both.proxy == "p:1" && both.downloads.connections == 16)
    #expect(try options("h/x", "-x", "10.0.0.1").downloads.connections == nil)
    #expect(try options("h/x", "-x", "").proxy == "")
  }

  /// `-i` is curl's, unless a file follows.
  @Test func lists() throws {
    #expect(try options("-i", "h/x").showsHead)
    #expect(try options("-i", "-").downloads.list == "-")
    #expect(try options("-i", "none", "-Z3").downloads.list == "none")
    let directory = try TemporaryDirectory()
    try directory.write("", to: "list")
    let list = try options("-i", directory.path("list"))
    #expect(list.downloads.list == directory.path("list") && !list.showsHead && list.url == "")
    #expect(try options("-i", directory.path).downloads.list == nil)
  }

  @Test(arguments: [
    (["h/x", "-x0", "-O"], "--connections wants a number from 1 to 64, not \"0\""),
    (["h/x", "-x", "65", "-O"], "--connections wants a number from 1 to 64, not \"65\""),
    (["h/x", "-x2"], "a download in pieces needs -o or -O: there has to be a file"),
    (["h/x", "-Z2", "-x2", "-O"], "--parallel-max is for the files of --input-file"),
    (["h/x", "--input-file", "l"], "--input-file and a URL exclude each other"),
    (["--input-file", "l", "-o", "f"], "--input-file and --output exclude each other"),
    (["--input-file", "l", "--mirror", "h/x"], "--input-file and --mirror exclude each other"),
    (["h/x", "-x2", "-O", "-d", "x"], "--data is not for downloads in pieces (-x, --mirror, --checksum, -i LIST)"),
    (["h/x", "-x2", "-O", "-I"], "--head is not for downloads in pieces (-x, --mirror, --checksum, -i LIST)"),
    (["h/x", "-O", "--checksum", "sha256:12"], "--checksum: a hash of sha256 has 32 bytes, and not 1"),
  ])
  func errors(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["get"] + arguments)[...]) }
    #expect(error?.description == message)
  }

  @Test(arguments: ["socket", "events"]) func otherCommandsHaveProxiesOnly(command: String) {
    #expect(throws: UsageError("-x wants a proxy, and not a number", topic: command == "socket" ? .socket : .events)) {
      try Invocation(parsing: [command, "h", "-x", "8"])
    }
  }
}
