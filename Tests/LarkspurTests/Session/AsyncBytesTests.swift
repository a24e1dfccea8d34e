import Foundation
import Larkspur
import LarkspurTestServer
import Testing

@Suite struct AsyncBytesTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private func bytes(of body: [UInt8]) async throws -> URLSession.AsyncBytes {
    server.route("GET", "/bytes") { _ in TestServer.Response(body: .bytes(body)) }
    return try await session.bytes(from: #require(URL(string: server.url("/bytes")))).0
  }

  @Test func anIteratorForEachLine() async throws {
    let bytes = try await bytes(of: Array("one\ntwo\n\nthree\nfour".utf8))
    var lines: [String] = []
    while let line = try await bytes.lines.first(where: { _ in true }) { lines.append(line) }
    #expect(lines == ["one", "two", "three", "four"])
    session.invalidateAndCancel()
  }

  @Test func whatOneLeavesIsForTheNext() async throws {
    let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
    let bytes = try await bytes(of: body)
    var received: [UInt8] = []
    // Includes iterators that take nothing, and iterators that take more bytes than one received piece has.
    for count in [1, 0, 2, 60_000, 0, 1, 70_000, 3] {
      var iterator = bytes.makeAsyncIterator()
      for _ in 0..<count { received.append(try #require(try await iterator.next())) }
    }
    for try await byte in bytes { received.append(byte) }
    #expect(received == body)
    session.invalidateAndCancel()
  }

  @Test func copiesOfAnIteratorGoOnWithOneAnother() async throws {
    let bytes = try await bytes(of: [1, 2, 3, 4])
    var iterator = bytes.makeAsyncIterator()
    #expect(try await iterator.next() == 1)
    var copy = iterator
    #expect(try await copy.next() == 2)
    #expect(try await iterator.next() == 3)
    #expect(try await copy.next() == 4)
    #expect(try await iterator.next() == nil)
    #expect(try await copy.next() == nil)
    #expect(try await bytes.lines.first { _ in true } == nil)
    session.invalidateAndCancel()
  }
}
