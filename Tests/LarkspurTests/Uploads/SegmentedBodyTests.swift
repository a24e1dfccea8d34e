import Foundation
import TestKit
import Testing

@testable import Larkspur

/// Tests the bodies that are made of bytes and files. AFNetworking's tests of forms read the same streams.
@Suite struct SegmentedBodyTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func bytes(of body: SegmentedBody, by size: Int = 1_000) throws -> [UInt8] {
    let stream = SegmentedBodyStream(body)
    stream.open()
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: size))
    while case let count = StreamBytes.read(stream, into: &buffer), count != 0 {
      if count < 0 { throw try #require(StreamBytes.error(of: stream)) }
      bytes += buffer[..<count]
    }
    #expect(stream.streamStatus == .atEnd)
    return bytes
  }

  @Test(arguments: [1, 7, 1_000]) func parts(size: Int) throws {
    try Data("file".utf8).write(to: directory.file("a"))
    let file = BodySegment.file(directory.file("a"), count: 4)
    let body = SegmentedBody(
      boundary: "B", parts: [(Array("A: 1\r\n\r\n".utf8), file), (Array("\r\n".utf8), .data(Data("x".utf8)))])
    let text = "--B\r\nA: 1\r\n\r\nfile\r\n--B\r\n\r\nx\r\n--B--\r\n"
    #expect(String(decoding: try bytes(of: body, by: size), as: UTF8.self) == text)
    #expect(body.count == text.utf8.count)
  }

  @Test func namesStayInTheirQuotes() {
    #expect(SegmentedBody.escaped("a\"\u{301}b\r\nc%22é") == "a%22\u{301}b%0D%0Ac%22é")
  }

  /// A file that is shorter than stated fails with the error of the body's owner, or else with one of a session.
  @Test func aFileThatShrinks() throws {
    try Data("file".utf8).write(to: directory.file("a"))
    var body = SegmentedBody(segments: [.file(directory.file("a"), count: 5)])
    #expect(#expect(throws: URLError.self) { try bytes(of: body) }?.code == .requestBodyStreamExhausted)
    body.error = { reason, _ in CocoaError(.fileReadCorruptFile, userInfo: [NSDebugDescriptionErrorKey: reason]) }
    #expect(throws: CocoaError.self) { try bytes(of: body) }
  }
}
