import Foundation
import Larkspur
import Testing

/// Tests URLs that need no server.
@Suite struct LocalLoadTests {
  private let session = URLSession(configuration: .ephemeral)

  private func load(_ text: String) async throws -> (Data, URLResponse) {
    try await session.data(from: try #require(URL(string: text)))
  }

  @Test(arguments: [
    ("data:,hello%20world", "hello world", "text/plain", nil),
    ("data:text/plain;charset=UTF-8,%E2%82%AC", "\u{20ac}", "text/plain", "UTF-8"),
    ("data:;base64,aGVsbG8=", "hello", "text/plain", nil),
    ("DATA:Text/HTML;Base64,aGVsbG8", "hello", "text/html", nil),
    ("data:application/json,%7B%7D#fragment", "{}", "application/json", nil),
    ("data:,", "", "text/plain", nil),
  ])
  func dataURLs(text: String, content: String, type: String, charset: String?) async throws {
    let (data, response) = try await load(text)
    #expect(String(decoding: data, as: UTF8.self) == content)
    #expect(response.mimeType == type)
    #expect(response.textEncodingName == charset)
    #expect(response.expectedContentLength == Int64(data.count))
    #expect(!(response is HTTPURLResponse))
  }

  @Test(arguments: ["data:hello", "data:;base64,a*b", "data:;base64,a"])
  func dataURLsThatSayNothing(text: String) async throws {
    let error = await #expect(throws: URLError.self) { try await load(text) }
    #expect(error?.code == .badURL)
  }

  @Test func filesHaveTheTypeOfTheirNames() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-local-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    for (name, type) in [
      ("page.HTML", "text/html"), ("photo.jpg", "image/jpeg"), ("data.json", "application/json"),
      ("script.js", "text/javascript"), ("archive.tar.gz", "application/gzip"), ("none", "application/octet-stream"),
    ] {
      let file = directory.appending(path: name)
      try Data(name.utf8).write(to: file)
      let (data, response) = try await session.data(from: file)
      #expect(data == Data(name.utf8))
      #expect(response.mimeType == type, "\(name)")
      #expect(response.suggestedFilename == name)
    }
  }
}
