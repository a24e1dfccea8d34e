import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct AsyncTextTests {
  private func stream(_ bytes: [UInt8]) -> AsyncStream<UInt8> {
    AsyncStream { continuation in
      for byte in bytes { continuation.yield(byte) }
      continuation.finish()
    }
  }

  private func scalars(_ bytes: [UInt8]) async throws -> String {
    var text = String.UnicodeScalarView()
    for try await scalar in stream(bytes).unicodeScalars { text.append(scalar) }
    return String(text)
  }

  @Test(arguments: ["", "a", "aä€😀", "\u{0}\u{7F}\u{80}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}"])
  func scalars(text: String) async throws {
    #expect(try await scalars(Array(text.utf8)) == text)
  }

  /// Invalid UTF-8 is repaired as `String(decoding:as:)` repairs it.
  @Test(
    arguments: [
      [0x80], [0xC0, 0xAF], [0xC2], [0xC2, 0x41], [0xE0, 0x9F, 0x80], [0xE2, 0x82], [0xE2, 0x82, 0xE2, 0x82, 0xAC],
      [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0x80, 0x80], [0xF0, 0x9F, 0x98], [0xF0, 0x9F, 0x98, 0x41],
      [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80], [0xFF, 0x41], [0xC2, 0xC2, 0xC2, 0xA9],
    ] as [[UInt8]])
  func brokenText(bytes: [UInt8]) async throws {
    #expect(try await scalars(bytes) == String(decoding: bytes, as: UTF8.self))
  }

  @Test func everyTwoBytesAreWhatTheyAreInAString() async throws {
    for first in UInt8(0x78)...0xFF {
      for second in [UInt8](arrayLiteral: 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE1, 0xFF) {
        let bytes = [first, second, 0x80, 0x41]
        #expect(try await scalars(bytes) == String(decoding: bytes, as: UTF8.self), "\(bytes)")
      }
    }
  }

  @Test func charactersOfMoreThanOneScalar() async throws {
    let text = "e\u{301}🇩🇪👩‍👩‍👧\r\nx"
    var characters: [Character] = []
    for try await character in stream(Array(text.utf8)).characters { characters.append(character) }
    #expect(characters == Array(text))
  }

  @Test func linesOfAnyBytes() async throws {
    var lines: [String] = []
    for try await line in stream(Array("one\n\ntwo".utf8)).lines { lines.append(line) }
    #expect(lines == ["one", "two"])
  }

  @Test func theTextOfABody() async throws {
    let server = try TestServer()
    server.route("GET", "/text") { _ in .text("grün") }
    let url = try #require(URL(string: server.url("/text")))
    let (bytes, _) = try await URLSession(configuration: .ephemeral).bytes(from: url)
    var text = ""
    for try await character in bytes.characters { text.append(character) }
    #expect(text == "grün")
  }
}
