import Foundation
import TestKit
import Testing

/// The Swift examples of the pages compile: those of the catalogues, of the README, and of the other folders' pages.
///
/// The blocks of a page are one function, each in the scope of the blocks before it, so a block may use their names. A block
/// of declarations that have to be at the top of a file (extensions, tests, public types) is there. Errors have the
/// page's line.
@Suite(.ownThread) struct ExampleTests {
  struct Block {
    /// The number of its first line of code on the page.
    var line: Int
    var lines: [Substring]

    var imports: [Substring] { lines.filter { $0.hasPrefix("import ") } }

    /// Whether it stands at the top of a file.
    var isDeclaration: Bool {
      let beginnings = ["extension ", "@main", "@Test", "@Suite", "public ", "private ", "fileprivate "]
      return lines.contains { line in beginnings.contains { line.hasPrefix($0) } }
    }

    /// The list of the package description that the block is a part of, or `nil` if it is no part of a manifest.
    var manifestList: String? {
      let lists = [
        ".package(": "[Package.Dependency]", ".product(": "[Target.Dependency]", ".executableTarget(": "[Target]",
        "dependencies: ": "",
      ]
      return lists.first { lines.first?.hasPrefix($0.key) == true }?.value
    }
  }

  /// Pages whose blocks another test compiles and runs, and blocks with imports that are not in this package.
  private static let compiledElsewhere = [
    "Sources/AFNetworking/AFNetworking.docc/": "CatalogueTests of AFNetworkingTests"
  ]
  private static let importedElsewhere: [Substring: String] = [
    "import Logging": "Tests/Observing/run", "import Metrics": "Tests/Observing/run",
    "import Tracing": "Tests/Observing/run",
  ]

  /// What the reader of a page has already: declarations for all of its blocks, by the page's name.
  private static let given: [String: String] = [
    "BackgroundTransfers.md": "let delegate: any URLSessionDelegate = given(); let url: URL = given()",
    "Errors.md": "let error: any Error = given()",
    "Larkspur.md": "let url: URL = given()",
    "LargeDownloads.md": "let session: URLSession = given(); let url: URL = given()",
    "LarkspurClient.md": """
    let json: String = given(); let pieces: AsyncStream<[UInt8]> = given(); let token: String = given(); \
    actor Counter { var value = 0 }; let counter: Counter = given(); \
    @Sendable func refreshed(_ token: String) async throws -> String { given() }
    """,
    "LarkspurTestServer.md": """
    let file: [UInt8] = given(); let rootFile: String = given(); \
    func write(_ text: String, to path: String) throws {}
    """,
    "Resuming.md": """
    let session: URLSession = given(); let url: URL = given(); let request: URLRequest = given(); let file: URL = given()
    """,
    "ServerSentEvents.md": "let url: URL = given(); let source: URLSessionEventSource = given()",
    "Threads.md": "let session: URLSession = given(); let urls: [URL] = given()",
    "ZipArchive.md": "let url: URL = given(); let directory: String = given()",
  ]

  private static let pages: [Repository.File] =
    ["Sources", "Benchmarks", "Examples", "Fuzz"].flatMap { Repository.files(under: $0, suffixes: [".md"]) }
    + [
      Repository.File(
        path: "README.md",
        text: (try? String(contentsOf: Repository.root.appending(path: "README.md"), encoding: .utf8)) ?? "")
    ]

  private static func blocks(of page: Repository.File) -> [Block] {
    var blocks: [Block] = []
    var open: Block?
    for (number, line) in page.lines.enumerated() {
      if line == "```", let block = open {
        blocks.append(block)
        open = nil
      } else if line == "```swift" {
        open = Block(line: number + 2, lines: [])
      } else {
        open?.lines.append(line)
      }
    }
    return blocks
  }

  /// The blocks that are compiled here, by page.
  private static let all: [(page: Repository.File, blocks: [Block])] = pages.compactMap { page in
    guard !compiledElsewhere.keys.contains(where: page.path.hasPrefix) else { return nil }
    let blocks = blocks(of: page).filter { $0.imports.allSatisfy { importedElsewhere[$0] == nil } }
    return blocks.isEmpty ? nil : (page, blocks)
  }

  /// Returns the code of a block with its place, between a line before it and one after it.
  private static func text(
    of block: Block, in page: Repository.File, after first: String = "", before last: String = ""
  ) -> String {
    let lines = block.lines.map { $0.hasPrefix("import ") ? "" : String($0) }.joined(separator: "\n")
    let place = "#sourceLocation(file: \"\(page.path)\", line: \(block.line - 1))"
    return "\(place)\n\(first)\n\(lines)\n\(last)\n#sourceLocation()\n"
  }

  /// Returns the file of a page.
  private static func program(_ page: Repository.File, _ blocks: [Block]) -> String {
    let product = ["LarkspurClient", "LarkspurTestServer", "ZipArchive"].first { page.path.contains("/\($0).docc/") }
    var imports: Set<Substring> = ["import Foundation", "import \(product ?? "Larkspur")"]
    for block in blocks { imports.formUnion(block.imports) }
    var text = imports.sorted().joined(separator: "\n") + "\n"
    for block in blocks where block.isDeclaration { text += Self.text(of: block, in: page) }
    text += "private func page() async throws {\n\(given[(page.path as NSString).lastPathComponent] ?? "")\n"
    let statements = blocks.filter { !$0.isDeclaration }
    for block in statements { text += "do {\n" + Self.text(of: block, in: page) }
    return text + String(repeating: "}\n", count: statements.count + 1)
  }

  /// Returns the file of a part of a manifest.
  private static func manifest(_ block: Block, _ list: String, in page: Repository.File) -> String {
    let (first, last) = list.isEmpty ? ("_ = Package(name: \"program\",", ")") : ("_ = [", "] as \(list)")
    let text = text(of: block, in: page, after: first, before: last)
    return "import PackageDescription\nprivate func part() {\n\(text)}\n"
  }

  @Test func everyPageCompiles() throws {
    #expect(Self.all.count > 20)
    let modules = try Compiler.modules
    // The test server's module is for packages that depend on this one: they have the module map.
    let headers = Repository.root.appending(path: "Sources/CLarkspurTestServer/include")
    var programs = ["Given.swift": "func given<Value>() -> Value { fatalError() }\n"]
    for (page, blocks) in Self.all {
      let blocks = blocks.filter { $0.manifestList == nil && !$0.imports.contains("import PackageDescription") }
      let name = page.path.replacing("/", with: "_").replacing(".md", with: ".swift")
      if !blocks.isEmpty { programs[name] = Self.program(page, blocks) }
    }
    #expect(try Compiler.errors(in: programs, ["-I", modules.path, "-I", headers.path]) == "")
  }

  @Test func everyManifestCompiles() throws {
    var programs: [String: String] = [:]
    for (page, blocks) in Self.all {
      for block in blocks {
        let name = "\(page.path.replacing("/", with: "_"))_\(block.line).swift"
        if let list = block.manifestList {
          programs[name] = Self.manifest(block, list, in: page)
        } else if block.imports.contains("import PackageDescription") {
          let text = Self.text(of: block, in: page)
          programs[name] = "import PackageDescription\nprivate func manifest() {\n\(text)}\n"
        }
      }
    }
    #expect(programs.count > 3)
    let description = try Compiler.libraries.appending(path: "pm/ManifestAPI")
    #expect(try Compiler.errors(in: programs, ["-I", description.path, "-package-description-version", "6.2"]) == "")
  }

  /// The test finds an error, and says where it is.
  @Test func anErrorHasThePagesLine() throws {
    let text = "# Page\n\n```swift\nlet one = 1\none.two()\n```\n"
    let page = Repository.File(path: "Sources/M/M.docc/Page.md", text: text)
    let blocks = Self.blocks(of: page)
    #expect(blocks.map(\.line) == [4])
    let errors = try Compiler.errors(in: ["Page.swift": Self.program(page, blocks)], ["-I", try Compiler.modules.path])
    #expect(errors.contains("Sources/M/M.docc/Page.md:5:"))
  }
}

/// The Swift compiler that has built the tests.
private enum Compiler {
  /// The folder of the modules that this program was built with.
  static var modules: URL {
    get throws {
      let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      return URL(filePath: program).deletingLastPathComponent().appending(path: "Modules")
    }
  }

  /// The folder `lib/swift` of the toolchain.
  static var libraries: URL {
    get throws {
      let text = try run(["-print-target-info"], in: Repository.root).output
      let info = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      let path = (info?["paths"] as? [String: Any])?["runtimeResourcePath"] as? String
      return URL(filePath: try #require(path))
    }
  }

  /// Returns the errors of the files, which are one module.
  static func errors(in files: [String: String], _ options: [String]) throws -> String {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-pages-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for (name, text) in files { try Data(text.utf8).write(to: directory.appending(path: name)) }
    let cache = try modules.deletingLastPathComponent().appending(path: "ModuleCache").path
    let (output, status) = try run(
      [
        "-typecheck", "-wmo", "-swift-version", "6", "-parse-as-library", "-module-name", "Pages", "-suppress-warnings",
        "-module-cache-path", cache,
      ] + options + files.keys.sorted(), in: directory)
    let errors = output.split(separator: "\n").filter { $0.contains(": error: ") }.joined(separator: "\n")
    return status == 0 || errors != "" ? errors : output
  }

  private static func run(_ arguments: [String], in directory: URL) throws -> (output: String, status: Int32) {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.currentDirectoryURL = directory
    process.arguments = ["swiftc"] + arguments
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (text, process.terminationStatus)
  }
}
