import Foundation
import Testing

@testable import AFNetworking

@Suite struct RememberedFailuresTests {
  let second: UInt64 = 1_000_000_000

  @Test func bounds() {
    var memory = RememberedFailures()
    memory.settings.countMax = 2
    for number in 0..<3 { memory.remember(URLError(.badURL), statusCode: 404, for: "\(number)", now: 0) }
    #expect(memory.count == 2 && memory.error(for: "0", now: 0) == nil && memory.error(for: "2", now: 0) != nil)
    memory.settings.countMax = -1
    #expect(memory.error(for: "2", now: 0) == nil && memory.count == 0)
    memory.remember(URLError(.badURL), statusCode: 404, for: "a", now: 0)
    #expect(memory.count == 0)
  }

  @Test func times() {
    var memory = RememberedFailures()
    memory.remember(URLError(.badURL), statusCode: 410, for: "a", now: 5 * second)
    #expect(memory.error(for: "a", now: 65 * second - 1) != nil)
    // A clock that goes back counts as no time.
    #expect(memory.error(for: "a", now: 0) != nil)
    #expect(memory.error(for: "a", now: 65 * second) == nil && memory.count == 0)
    memory.remember(URLError(.badURL), statusCode: 500, for: "a", now: 0)
    memory.remember(URLError(.badURL), statusCode: nil, for: "a", now: 0)
    #expect(memory.count == 0)
    memory.remember(URLError(.badURL), statusCode: 404, for: "a", now: 0)
    memory.forget("a")
    #expect(memory.error(for: "a", now: 0) == nil)
  }
}
