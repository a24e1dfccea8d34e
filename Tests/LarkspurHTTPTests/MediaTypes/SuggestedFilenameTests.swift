import LarkspurHTTP
import TestKit
import Testing

@Suite struct SuggestedFilenameTests {
  func name(
    _ disposition: String? = nil, path: String? = nil, host: String? = nil, type: String? = nil
  ) -> String {
    SuggestedFilename.name(
      disposition: disposition, pathComponent: path, host: host, mediaType: type.flatMap { MediaType(parsing: $0) })
  }

  @Test func order() {
    let disposition = "attachment; filename=a.txt"
    #expect(name(disposition, path: "b.txt", host: "example.org") == "a.txt")
    #expect(name("attachment", path: "b.txt", host: "example.org") == "b.txt")
    #expect(name(nil, path: "/", host: "example.org") == "example.org")
    #expect(name(nil, path: nil, host: "example.org", type: "text/html") == "example.org.html")
    #expect(name() == "Unknown")
    #expect(name(host: "", type: "application/pdf") == "Unknown.pdf")
    // An unusable name is skipped, and the next source is used.
    #expect(name("attachment; filename=\"..\"", path: "b.txt") == "b.txt")
  }

  /// CVE-2020-8177: a server cannot name a file in another directory or a hidden file.
  @Test(
    arguments: [
      ("../../etc/passwd", "_.._etc_passwd"), ("/etc/passwd", "_etc_passwd"), ("C:\\a\\b.txt", "C:_a_b.txt"),
      ("a\0b\u{7f}c\u{85}d.txt", "abcd.txt"), ("a\r\nb.txt", "ab.txt"), ("\u{202e}gpj.exe", "gpj.exe"),
      ("  a b .txt ", "a b .txt"), (".profile", "profile"), (". .profile", "profile"), ("..", "Unknown"),
      (".", "Unknown"), ("", "Unknown"), ("name. ", "name"), ("a.txt..", "a.txt"),
      ("../..", "Unknown"), ("///", "Unknown"), ("\0", "Unknown"), (" ", "Unknown"), ("...", "Unknown"),
      ("\u{202e}", "Unknown"), ("ä ö.txt", "ä ö.txt"),
    ])
  func isSafe(path: String, expected: String) {
    #expect(name(path: path) == expected)
  }

  @Test(
    arguments: [
      ("a", "text/plain; charset=utf-8", "a.txt"), ("a.bin", "text/plain", "a.bin"), ("a", "image/jpeg", "a.jpeg"),
      ("a", "application/octet-stream", "a"), ("a", "application/vnd.api+json", "a.json"),
      ("a", "application/x-y+xml", "a.xml"), ("a", "nonsense", "a"), ("a.", "text/html", "a.html"),
      (".profile", "text/plain", "profile.txt"), ("Vol. 1 of 2", "application/pdf", "Vol. 1 of 2.pdf"),
      ("1.2.averylongendingindeed", "application/zip", "1.2.averylongendingindeed.zip"),
    ])
  func extensions(path: String, type: String, expected: String) {
    #expect(name(path: path, type: type) == expected)
  }

  @Test func lengths() {
    let most = SuggestedFilename.bytesMax
    func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
    #expect(name(path: repeated("a", most)) == repeated("a", most))
    #expect(name(path: repeated("a", most + 1)) == repeated("a", most))
    #expect(name(path: repeated("a", 300) + ".txt") == repeated("a", most - 4) + ".txt")
    #expect(name(path: repeated("a", 300), type: "text/html") == repeated("a", most - 5) + ".html")
    #expect(name(path: repeated("ä", 200) + ".txt") == repeated("ä", 125) + ".txt")
    // A single character may be longer than the longest name.
    let monster = "a" + repeated("\u{301}", 300)
    #expect(name(path: monster) == "Unknown")
    let ending = repeated("x", SuggestedFilename.extensionBytesMax)
    #expect(name(path: repeated("a", 300) + "." + ending).hasSuffix("." + ending))
    #expect(name(path: repeated("a", 300) + "." + ending + "x") == repeated("a", most))
  }

  /// Any text results in a name for a file in the same directory.
  @Test func anyText() {
    var generator = SeededGenerator(for: "file names")
    let pieces = ["/", "\\", ".", "..", "\0", "a", "ä", "\u{202e}", " ", "\n", "%2f", "\u{301}", "👩‍👩‍👧", "_", "~"]
    for _ in 0..<5000 {
      let path = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
        pieces.randomElement(using: &generator) ?? ""
      }.joined()
      let result = name(path: path, type: Bool.random(using: &generator) ? "text/html" : nil)
      #expect(1...SuggestedFilename.bytesMax ~= result.utf8.count)
      #expect(!result.hasPrefix("."))
      #expect(!result.unicodeScalars.contains { $0 == "/" || $0 == "\\" || $0.value < 0x20 || $0 == "\u{202e}" })
    }
  }
}
