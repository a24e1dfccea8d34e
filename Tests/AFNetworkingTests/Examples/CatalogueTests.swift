import Foundation
import Testing

/// Checks that every example of the documentation catalogue is also in this directory, where it is compiled and run.
@Suite struct CatalogueTests {
  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  private static let catalogue = tests.appending(path: "../../../Sources/AFNetworking/AFNetworking.docc")

  private static func texts(of directory: URL, _ suffix: String) throws -> [(name: String, text: String)] {
    try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(suffix) }.sorted().map {
      ($0, try String(contentsOf: directory.appending(path: $0), encoding: .utf8))
    }
  }

  /// Removes white space: an example is indented here, since it is inside a function.
  private static func dense(_ text: String) -> String { String(text.filter { !$0.isWhitespace }) }

  @Test func everyExampleIsCompiled() throws {
    let sources = try Self.texts(of: Self.tests, ".swift").map { Self.dense($0.text) }
    var count = 0
    for (name, page) in try Self.texts(of: Self.catalogue, ".md") {
      for block in page.components(separatedBy: "```swift\n").dropFirst() {
        let example = block.components(separatedBy: "```")[0]
        let code = Self.dense(example.replacingOccurrences(of: "import AFNetworking\n", with: ""))
        #expect(sources.contains { $0.contains(code) }, "\(name): \(example)")
        count += 1
      }
    }
    #expect(count > 5)
  }
}
