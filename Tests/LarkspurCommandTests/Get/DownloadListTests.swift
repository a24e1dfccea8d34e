import Larkspur
import Testing

@testable import LarkspurCommand

@Suite struct DownloadListTests {
  private static let hash = String(repeating: "a", count: 64)

  @Test func entries() throws {
    let text =
      "\u{feff}# models\r\n\r\nhttps://h/a.bin\n  h/b%20c?x=y#z  out=one/two.bin\tsha256=\(Self.hash)  \n"
      + "   # more\nhttp://h/ out=\"a b\"\n"
    let entries = try DownloadList(text, name: "list").entries
    #expect(entries.map(\.line) == [3, 4, 6])
    #expect(entries.map(\.path) == ["a.bin", "one/two.bin", "a b"])
    #expect(entries.map(\.url.uri) == ["https://h/a.bin", "http://h/b%20c?x=y", "http://h/"])
    #expect(try entries.map(\.checksum) == [nil, DownloadChecksum("sha256:\(Self.hash)"), nil])
  }

  /// A list may come from another place: no name leads out of the directory, and none is hidden.
  @Test(arguments: [
    "/etc/x", "../x", "a/../../x", "a//x", "./x", "a/", "", ".profile", "a/.ssh", "a\\..\\x", "..", "a/ ..",
    "x\u{202e}y",
  ])
  func pathsThatAreRefused(path: String) {
    let error = #expect(throws: DownloadList.Faults.self) { try DownloadList("h/x out=\"\(path)\"", name: "list") }
    #expect(error?.status == .usage && error?.messages.first?.hasPrefix("list:1: out=\(path): ") == true)
  }

  /// The name of a URL is made safe.
  @Test(arguments: [("h/.profile", "profile"), ("h/%2e%2e%2fx", "%2e%2e%2fx"), ("h/a\\b", "a_b")])
  func namesOfURLs(url: String, name: String) throws {
    #expect(try DownloadList(url, name: "list").entries.map(\.path) == [name])
  }

  @Test func faults() {
    let text = """
      http://h/a
      ftp://h/b
      http://h/c size=1
      http://h/
      http://h/d sha256=12
      http://h/x/a
      http://h/e out=e out=f
      http://
      """
    let error = #expect(throws: DownloadList.Faults.self) { try DownloadList(text, name: "list") }
    #expect(error?.status == .unsupportedProtocol)
    let lines = error?.messages ?? []
    #expect(
      lines.map { String($0.prefix { $0 != " " }) } == [2, 3, 4, 5, 6, 7, 8].map { "list:\($0):" }, "\(lines)")
    #expect(lines.count > 4 && lines[4] == "list:6: a is the file of line 1, too")
    #expect(throws: DownloadList.Faults(status: .usage, messages: ["list names no URL"])) {
      try DownloadList("\n # x\n", name: "list")
    }
  }
}
