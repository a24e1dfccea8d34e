import Foundation
import LarkspurBytes
import LarkspurTestServer
import TestKit
import Testing

@testable import Larkspur

/// Tests Foundation's own functions (`Data(contentsOf:)`, `String(contentsOf:)`) with URLs of servers.
@Suite(.ownThread, .timeLimit(.minutes(2))) struct RemoteContentsTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  @Test func dataAndTextAreLoaded() throws {
    #expect(try Data(contentsOf: url("/bytes/100000")).count == 100_000)
    #expect(try Data(contentsOf: #require(URL(string: "data:,hello"))) == Data("hello".utf8))
    #expect(try String(contentsOf: #require(URL(string: "data:,hello")), encoding: .utf8) == "hello")
  }

  @Test func aFileIsReadAsBefore() throws {
    #expect(throws: CocoaError.self) { try Data(contentsOf: URL(fileURLWithPath: "/nothing/here")) }
    #expect(try Data(contentsOf: URL(fileURLWithPath: "/proc/self/comm")).isEmpty == false)
  }

  @Test func anErrorStatusIsAnError() throws {
    for status in [404, 500] {
      let url = try url("/status/\(status)")
      let error = #expect(throws: CocoaError.self) { try Data(contentsOf: url) }
      #expect((error?.underlying as? URLError)?.code == .badServerResponse)
    }
    for status in [204, 401] { _ = try Data(contentsOf: url("/status/\(status)")) }
  }

  @Test func whatFailedIsBeneath() throws {
    let closed = try #require(URL(string: "http://127.0.0.1:0/"))
    let error = #expect(throws: CocoaError.self) { try Data(contentsOf: closed) }
    #expect(error?.code == .fileReadUnknown && error?.url == closed)
    #expect((error?.underlying as? URLError)?.code == .cannotConnectToHost)
  }

  @Test func aHandlerMayWaitForAnother() throws {
    let (url, count, done) = (try url("/bytes/10"), OneShot<Int>(), DispatchSemaphore(value: 0))
    URLSession.shared.dataTask(with: url) { _, _, _ in
      if let bytes = try? Data(contentsOf: url).count { count.set(bytes) }
      done.signal()
    }.resume()
    done.wait()
    #expect(count.value == 10)
  }

  @Test func aLoopDoesNotWaitForItself() async throws {
    let url = try url("/bytes/10")
    let executor = try #require(RemoteContents.session.taskExecutor)
    await withTaskExecutorPreference(executor) {
      let error = #expect(throws: CocoaError.self) { try Data(contentsOf: url) }
      #expect((error?.underlying as? URLError)?.code == .cannotLoadFromNetwork)
    }
  }
}
