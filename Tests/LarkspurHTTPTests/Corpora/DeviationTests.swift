import Foundation
import TestKit
import Testing

@Suite struct DeviationTests {
  @Test func noCaseStandsTwice() {
    let names = Deviation.table.map { "\($0.suite) \($0.name)" }
    #expect(Set(names).count == names.count)
  }

  /// Every row names a case that a suite still has; otherwise an outdated row would go unnoticed.
  @Test(.enabled(if: Corpora.shouldRun, "\(Corpora.absence)")) func everyRowIsAboutACase() throws {
    let files = [
      "llhttp/cases.json", "go-net-http/responses.json", "go-net-http/response_errors.json", "wpt/h1_status_code.json",
      "wpt/content-lengths.json", "chromium-net/response_headers.json",
    ]
    var strings = Set<String>()
    func collect(_ value: Any) {
      switch value {
      case let text as String: strings.insert(text)
      case let list as [Any]: list.forEach(collect)
      case let object as [String: Any]: object.values.forEach(collect)
      default: break
      }
    }
    for file in files { collect(try JSONSerialization.jsonObject(with: Corpora.data(file))) }
    for deviation in Deviation.table {
      #expect(strings.contains(deviation.name), "\(deviation.suite): \(deviation.name)")
    }
  }
}
