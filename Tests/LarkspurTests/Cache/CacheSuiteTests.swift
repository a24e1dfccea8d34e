import Foundation
import LarkspurHTTP
import TestKit
import Testing

@testable import Larkspur

/// Runs the conformance suite against the cache with a simulated task (`PlayedTask`) that follows plans as a session
/// does, without a session and a network. Time is a number.
@Suite(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) struct CacheSuiteTests {
  /// The required tests that fail in our private cache, each with its reason.
  static let deviations: [String: String] = [:]

  struct Line {
    var test: CacheSuite.Test
    var outcome: CacheSuiteRunner.Outcome
  }

  static func run(onDisk: Bool) async throws -> [Line] {
    var lines: [Line] = []
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    for test in try CacheSuite.all().flatMap(\.tests) where test.isForPrivateCaches {
      let id = UUID().uuidString.lowercased()
      let cache = URLCache(
        memoryCapacity: onDisk ? 0 : 4 << 20, diskCapacity: onDisk ? 20 << 20 : 0, directory: directory)
      var client = PlayedTask(cache: cache, origin: CacheSuiteOrigin(id: id, requests: test.requests))
      lines.append(Line(test: test, outcome: await CacheSuiteRunner(test: test, id: id).run(&client)))
      // Waits for the writes: by the suite's clock, every file being written is old, and the next cache would remove it
      // as an orphan.
      cache.core.settle()
    }
    return lines
  }

  static func report(_ lines: [Line], title: String) -> (required: Int, passed: Int) {
    var required = (0, 0)
    print("cache suite, \(title)")
    for kind in ["required", "optimal", "check"] {
      let some = lines.filter { ($0.test.kind ?? "required") == kind }
      let passed = some.count { $0.outcome == .pass }
      print("  \(kind): \(passed) of \(some.count)")
      if kind == "required" { required = (some.count, passed) }
      for line in some where line.outcome != .pass && kind != "check" { print("    \(line.test.id): \(line.outcome)") }
    }
    return required
  }

  @Test(arguments: [false, true]) func requiredTestsPass(onDisk: Bool) async throws {
    let lines = try await Self.run(onDisk: onDisk)
    let (required, passed) = Self.report(lines, title: onDisk ? "on disk" : "in memory")
    #expect(required > 100)
    for line in lines where line.test.isRequired {
      if line.outcome == .pass {
        #expect(Self.deviations[line.test.id] == nil, "\(line.test.id) passes: take it off the list")
      } else {
        #expect(Self.deviations[line.test.id] != nil, "\(line.test.id): \(line.outcome)")
      }
    }
    #expect(Double(passed) >= 0.95 * Double(required))
  }
}

/// A simulated session task, as far as a cache sees it.
struct PlayedTask: CacheSuiteClient {
  struct NoAnswer: Error {}

  let cache: URLCache
  var origin: CacheSuiteOrigin
  var now = Date(timeIntervalSince1970: 1_800_000_000.25)

  /// The cache policies that are nearest to the cache modes of the Fetch standard.
  static let policies: [String: URLRequest.CachePolicy] = [
    "no-store": .reloadIgnoringLocalCacheData, "reload": .reloadIgnoringLocalAndRemoteCacheData,
    "no-cache": .reloadRevalidatingCacheData, "force-cache": .returnCacheDataElseLoad,
    "only-if-cached": .returnCacheDataDontLoad,
  ]

  mutating func pause(seconds: Int) { now += Double(seconds) }

  func seen() -> [CacheSuiteOrigin.Seen] { origin.seen }

  mutating func fetch(
    method: String, path: String, fields: FieldList, body: String?, mode: String?
  ) async throws -> CacheSuiteResponse {
    var request = URLRequest(url: try #require(URL(string: "http://cache.test\(path)")))
    request.httpMethod = method
    request.httpBody = body.map { Data($0.utf8) }
    let policy = mode.flatMap { Self.policies[$0] } ?? .useProtocolCachePolicy
    switch await cache.plan(for: request, fields: fields, policy: policy, now: now) {
    case .fail(let code): throw URLError(code)
    case .serve(let answer):
      if let refresh = answer.refresh { _ = try? send(refresh, fields, path) }
      return response(answer.response, answer.data)
    case .load(let exchange), .validate(let exchange): return try send(exchange, fields, path)
    }
  }

  private mutating func send(
    _ exchange: CacheExchange, _ fields: FieldList, _ path: String
  ) throws -> CacheSuiteResponse {
    let method = exchange.request.method
    let sent = fields + exchange.addedFields
    let answer = origin.answer(method: method, path: path, fields: sent, now: now.timeIntervalSince1970)
    guard let answer, !answer.isDisconnect else {
      guard let standIn = cache.failed(exchange, now: now) else { throw NoAnswer() }
      return response(standIn.response, standIn.data)
    }
    let head = HTTPURLResponse.make(
      url: exchange.url, status: answer.status, version: "HTTP/1.1", fields: answer.fields, isDecoded: false)
    let length = answer.fields.firstValue(named: "Content-Length").flatMap(Int.init)
    let body = answer.body.prefix(length ?? answer.body.count)
    switch cache.received(head, for: exchange, now: now) {
    case .deliver, .reload: return response(head, body)
    case .deliverAndStore(let storing):
      cache.store(storing.proposed(Data(body)), for: storing)
      return response(head, body)
    case .useStored(let stored): return response(stored.response, stored.data)
    }
  }

  private func response(_ response: HTTPURLResponse, _ body: Data) -> CacheSuiteResponse {
    CacheSuiteResponse(
      status: response.statusCode, fields: response.fields.list, body: String(decoding: body, as: UTF8.self))
  }
}
