import Testing

/// Nested public types do not shadow common names: every extension of the outer type finds the nested type first.
@Suite struct NestedNameTests {
  /// Names of the standard library and of Foundation that programs use without their module's name.
  private static let taken: Set<String> = [
    "Array", "Bool", "Bundle", "Character", "Data", "Date", "Decoder", "Dictionary", "Double", "Duration", "Encoder",
    "Error",
    "FileManager", "Float", "Host", "Int", "Locale", "Never", "Notification", "Operation", "Optional", "OutputStream",
    "InputStream", "Process", "Progress", "Range", "Result", "Scanner", "Set", "Stream", "String", "Substring", "Task",
    "Thread", "Timer", "URL", "URLRequest", "URLResponse", "UUID", "Unit", "Void",
  ]

  /// Nested names that Darwin's own types have.
  private static let ofDarwin = ["Sources/Larkspur/Session/NWEndpoint.swift": "Host"]

  @Test func nestedNamesShadowNothing() {
    let modules: Set<String> = ["Larkspur", "AFNetworking", "AFNetworkingXML", "LarkspurTestServer", "ZipArchive"]
    let files = RuleTests.sources.filter { modules.contains($0.module) }
    #expect(!files.isEmpty)
    let modifiers: Set<Substring> = ["public", "open", "final", "indirect"]
    let kinds: Set<Substring> = ["struct", "class", "enum", "actor", "protocol", "typealias"]
    for file in files {
      for (number, line) in file.code.enumerated() where line.hasPrefix("  ") {
        let tokens = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
        guard tokens.first == "public" || tokens.first == "open",
          let kind = tokens.firstIndex(where: { !modifiers.contains($0) }), kinds.contains(tokens[kind]),
          kind + 1 < tokens.count
        else { continue }
        let name = String(tokens[kind + 1])
        #expect(!Self.taken.contains(name) || Self.ofDarwin[file.path] == name, "\(file.path):\(number + 1): \(name)")
      }
    }
  }
}
