import Foundation
import Larkspur
import LarkspurCommand
import Testing

@Suite struct SocketLinesTests {
  /// The messages of an input that arrives in pieces of `size` bytes.
  private func messages(_ bytes: [UInt8], isBinary: Bool, inPiecesOf size: Int) throws -> [[UInt8]] {
    var lines = SocketLines(isBinary: isBinary)
    var messages: [[UInt8]] = []
    func take(_ message: URLSessionWebSocketTask.Message) {
      switch message {
      case .string(let text):
        #expect(!isBinary)
        messages.append(Array(text.utf8))
      case .data(let data):
        #expect(isBinary)
        messages.append(Array(data))
      }
    }
    for start in stride(from: 0, to: bytes.count, by: size) {
      lines.append(Array(bytes[start..<min(start + size, bytes.count)]))
      while let message = try lines.next() { take(message) }
    }
    if let message = try lines.last() { take(message) }
    return messages
  }

  @Test(arguments: [
    ("", []), ("\n", [""]), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]), ("\n\na\n\n", ["", "", "a", ""]),
    ("a\r\nb\n", ["a\r", "b"]), ("lärk\n☀\n", ["lärk", "☀"]),
  ])
  func lines(text: String, expected: [String]) throws {
    for size in 1...8 {
      for isBinary in [false, true] {
        let found = try messages(Array(text.utf8), isBinary: isBinary, inPiecesOf: size)
        #expect(found == expected.map { Array($0.utf8) }, "\(size)")
      }
    }
  }

  @Test func otherBytes() throws {
    let bytes: [UInt8] = [0xff, 0x0a, 0x00, 0xc3]
    #expect(try messages(bytes, isBinary: true, inPiecesOf: 3) == [[0xff], [0x00, 0xc3]])
    #expect(throws: SocketLines.Failure.notUTF8(line: 1)) { try messages(bytes, isBinary: false, inPiecesOf: 3) }
    #expect(throws: SocketLines.Failure.notUTF8(line: 2)) {
      try messages([0x61, 0x0a, 0xc3], isBinary: false, inPiecesOf: 1)
    }
  }

  /// A line at the limit is a message. A longer one fails before its line feed comes.
  @Test func longLines() throws {
    let longest = [UInt8](repeating: 0x61, count: SocketLines.lineBytesMax)
    var lines = SocketLines(isBinary: true)
    lines.append(longest)
    let early = try lines.next()
    #expect(early == nil)
    lines.append([0x0a])
    guard case .data(let data)? = try lines.next() else {
      Issue.record("the line is no message")
      return
    }
    #expect(data.count == longest.count)
    lines.append(longest)
    lines.append([0x61])
    #expect(throws: SocketLines.Failure.tooLong(line: 2)) { _ = try lines.next() }
  }
}
