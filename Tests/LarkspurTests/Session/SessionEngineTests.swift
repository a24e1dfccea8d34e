import Foundation
import LarkspurTransport
import Testing

@testable import Larkspur

@Suite struct SessionEngineTests {
  /// What is forgotten is what nobody has gone to for long: its idle connections would not be found any more.
  @Test func waysThatAreGoneAreKept() async throws {
    let session = URLSession(configuration: .ephemeral)
    let engine = try SessionEngine(session.configuration)
    let targets = try (0..<3_000).map { number in
      try LoadTarget(#require(URL(string: "https://\(number).example/")))
    }
    let core = session.core
    try await engine.loop.run {
      func way(to number: Int) -> SessionEngine.Way? {
        engine.knownWay(to: targets[number], decider: nil, trafficClass: 0)
      }
      let first = try await engine.makeWay(to: targets[0], of: core, decider: nil, trafficClass: 0)
      for number in 1..<targets.count {
        #expect(way(to: number) == nil)
        _ = try await engine.makeWay(to: targets[number], of: core, decider: nil, trafficClass: 0)
        if number.isMultiple(of: 400) { #expect(way(to: 0) === first) }
      }
      #expect(way(to: 0) === first && way(to: 1) == nil && way(to: 2_900) != nil)
    }
    engine.shutDown()
  }
}
