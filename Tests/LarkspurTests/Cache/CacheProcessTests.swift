import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests caches of several processes that share a directory and may be killed.
@Suite(.serialized, .ownThread) struct CacheProcessTests {
  /// The number at the start of a body, or `nil` if the rest of the body does not belong to this number.
  private func serial(of body: Data) -> Int? {
    guard let colon = body.firstIndex(of: UInt8(ascii: ":")),
      let number = Int(String(decoding: body[..<colon], as: UTF8.self)),
      body[(colon + 1)...].elementsEqual(repeatElement(UInt8(number % 251), count: number * 7919 % 100_000))
    else { return nil }
    return number
  }

  private func numbers(_ cache: URLCache, _ name: String) throws -> [Int] {
    try (0..<8).compactMap { index in
      guard let found = cache.cachedResponse(for: request("http://cache.test/\(name)/\(index)")) else { return nil }
      let number = try #require(serial(of: found.data), "a torn body of \(found.data.count) bytes")
      #expect(number % 8 == index)
      return number
    }
  }

  @Test func killedAtAnyMoment() throws {
    var generator = SeededGenerator(for: "cache writers killed")
    let directory = CacheDirectory()
    for round in 0..<15 {
      let writer = try CookieProcessTests.Writer(command: "cache-writer", directory.url.path, "r\(round)", "1000000")
      let last = try #require(writer.read(lines: Int.random(in: 1...40, using: &generator)))
      writer.kill()
      let cache = directory.cache(disk: 4 << 20)
      let found = try numbers(cache, "r\(round)")
      // The cache has an entry that the writer reported as written, or a later one.
      #expect(found.contains { $0 >= last }, "\(found) \(last)")
      #expect(found.count == min(8, (found.max() ?? 0) + 1), "what was replaced when it was killed is there as well")
      #expect(cache.currentDiskUsage <= 4 << 20)
    }
  }

  /// A process that exits normally first finishes its cache writes. Otherwise a program that loads one response and
  /// exits would never find it again.
  @Test func endedAfterALoad() throws {
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .content(0..<200_000))
    }
    for _ in 0..<8 {
      let directory = CacheDirectory()
      let url = server.url("/a")
      let writer = try CookieProcessTests.Writer(command: "cache-writer", directory.url.path, "load", url)
      #expect(writer.finish() == 0)
      #expect(directory.cache(disk: 4 << 20).cachedResponse(for: request(url))?.data.count == 200_000)
    }
  }

  /// A server that answers with a body, or with 304 if the request has its tag. Each answer has a larger number.
  private func numberingServer() throws -> TestServer {
    let server = try TestServer()
    let count = Atomic(0)
    server.route("GET", "/a") { request in
      let isKnown = request.fields["If-None-Match"] != nil
      let number = count.add(1, ordering: .relaxed).newValue
      return TestServer.Response(
        status: isKnown ? 304 : 200,
        fields: ["ETag": "\"e\"", "Cache-Control": "no-cache", "X-Number": "\(number)"],
        body: isKnown ? .text("") : .content(0..<100_000))
    }
    return server
  }

  private func number(_ cache: URLCache, _ url: String) -> Int? {
    let response = cache.cachedResponse(for: request(url))?.response as? HTTPURLResponse
    return response?.value(forHTTPHeaderField: "X-Number").flatMap { Int($0) }
  }

  /// A process that is killed during revalidations leaves the whole body, with the head last reported as written or a
  /// later one.
  @Test func killedWhileItRevalidates() throws {
    let server = try numberingServer()
    let url = server.url("/a")
    let directory = CacheDirectory()
    var generator = SeededGenerator(for: "cache revalidations killed")
    for _ in 0..<10 {
      let writer = try CookieProcessTests.Writer(command: "cache-writer", directory.url.path, "revalidate", url)
      let last = try #require(writer.read(lines: Int.random(in: 1...30, using: &generator)))
      writer.kill()
      let cache = directory.cache(disk: 4 << 20)
      #expect(cache.cachedResponse(for: request(url))?.data.count == 100_000)
      #expect(try #require(number(cache, url)) >= last)
    }
    #expect(directory.names.count { $0.hasSuffix(".entry") } == 1)
  }

  /// A process that exits normally writes the head whose write was delayed.
  @Test func endedAfterARevalidation() throws {
    let server = try numberingServer()
    let url = server.url("/a")
    let directory = CacheDirectory()
    let writer = try CookieProcessTests.Writer(command: "cache-writer", directory.url.path, "revalidate-once", url)
    #expect(writer.finish() == 0)
    let cache = directory.cache(disk: 4 << 20)
    #expect(number(cache, url) == 2 && cache.cachedResponse(for: request(url))?.data.count == 100_000)
  }

  @Test func severalAtOnce() throws {
    let directory = CacheDirectory()
    let writers = try (0..<3).map {
      try CookieProcessTests.Writer(command: "cache-writer", directory.url.path, "w\($0)", "40")
    }
    for writer in writers { #expect(writer.finish() == 0) }
    let cache = directory.cache(disk: 4 << 20)
    for name in ["w0", "w1", "w2"] { #expect(try numbers(cache, name).sorted() == Array(32..<40)) }
    #expect(!directory.names.contains { $0.hasSuffix(CacheEntryName.temporarySuffix) })
  }
}
