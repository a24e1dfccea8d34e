import Foundation
import TestKit
import Testing

/// Each known vulnerability of HTTP clients that this client could have is named in the test that excludes it.
@Suite struct AdvisoryTests {
  private struct Advisory: Decodable {
    var id: String
    var what: String
  }

  /// The vulnerabilities that this client cannot have, and why.
  private static let others = [
    "CVE-2018-1000005": "HTTP/2",
    "CVE-2025-10148": "there are no WebSocket frames yet",
    "CVE-2025-5399": "there are no WebSocket frames yet",
    "CVE-2026-11586": "there are no WebSocket frames yet",
  ]

  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func eachIsNamed() throws {
    let advisories = try Corpora.decode([Advisory].self, from: "cve/http_client_cves.json")
    #expect(advisories.count > 50)
    let own = "AdvisoryTests.swift"
    let tests = Repository.files(under: "Tests").filter { !$0.path.hasSuffix("LarkspurRepositoryTests/\(own)") }
    let text = tests.map(\.text).joined(separator: "\n")
    for advisory in advisories {
      for id in Self.parts(of: advisory.id) {
        let isNamed = text.contains(id)
        #expect(isNamed != (Self.others[id] != nil), "\(id): \(advisory.what)")
      }
    }
    let known = Set(advisories.flatMap { Self.parts(of: $0.id) })
    #expect(known.isSuperset(of: Self.others.keys))
  }

  /// Splits an identifier that stands for several: `CVE-2016-4642/4643` is two.
  private static func parts(of id: String) -> [String] {
    guard id.hasPrefix("CVE-") else { return [id] }
    let parts = (id.split(separator: " ").first ?? "").split(separator: "/")
    let stem = parts.first?.prefix("CVE-0000-".count) ?? ""
    return parts.map { $0.hasPrefix("CVE-") ? String($0) : String(stem) + String($0) }
  }
}
