import Foundation
import Testing

/// The lists of the pages are those of the tree: modules, imports, folders, files, locks, tests, fuzz targets, products.
@Suite struct PageTests {
  /// A page of the catalogue of `Larkspur`.
  private struct Page {
    let file: Repository.File

    init(_ name: String) throws {
      let path = "Sources/Larkspur/Larkspur.docc/\(name).md"
      file = try #require(PageTests.pages.first { $0.path == path })
    }

    /// Returns the lines below a heading, up to the next one of its level or above.
    func section(_ heading: String) -> [Substring] {
      let level = heading.prefix { $0 == "#" }.count
      let rest = file.lines.drop { $0 != heading }.dropFirst()
      return Array(rest.prefix { !$0.hasPrefix("#") || $0.prefix { $0 == "#" }.count > level })
    }

    /// Returns the cells of each row of the tables below a heading, and the first cell of each table's head.
    func rows(_ heading: String? = nil) -> [(table: Substring, cells: [Substring])] {
      var rows: [(Substring, [Substring])] = []
      var table: Substring?
      for line in heading.map(section) ?? file.lines {
        guard line.hasPrefix("|") else {
          table = nil
          continue
        }
        let cells = line.dropFirst().split(separator: "|", omittingEmptySubsequences: false).dropLast()
          .map { $0.drop { $0 == " " } }
        if let table { rows.append((table, cells)) }
        table = table ?? line
      }
      return rows.filter { !$1.allSatisfy { $0.allSatisfy { $0 == "-" } } }
    }
  }

  private static let pages = Repository.files(under: "Sources", suffixes: [".md"])

  /// Returns the texts between single backquotes of a line.
  private static func code(_ line: some StringProtocol) -> [Substring] {
    let parts = Substring(line).replacing("``", with: "\"").split(separator: "`", omittingEmptySubsequences: false)
    return parts.enumerated().filter { $0.offset % 2 == 1 && $0.offset < parts.count - 1 }.map(\.element)
  }

  /// The words of the sources, without comments.
  private static let words: Set<String> = {
    let separators = CharacterSet.alphanumerics.union(["_"]).inverted
    let code = RuleTests.sources.map { $0.code.joined(separator: "\n") }
    let headers = Repository.files(under: "Sources", suffixes: [".h"]).map(\.text)
    return Set((code + headers).flatMap { $0.components(separatedBy: separators) })
  }()

  private static let modules = Set(
    Repository.files(under: "Sources", suffixes: [".swift", ".c"]).map(\.module).filter { $0 != "" })

  // MARK: - Modules and folders

  /// The drawing has all modules, and each import leads to a line below.
  @Test func theDrawingHasAllModules() throws {
    let lines = try Page("Architecture").section("## Modules").drop { $0 != "```" }.dropFirst().prefix { $0 != "```" }
    var heights: [String: Int] = [:]
    for (height, line) in lines.enumerated() {
      for name in line.split(separator: " ") { heights[String(name)] = height }
    }
    #expect(Set(heights.keys) == Self.modules)
    for (module, imports) in RuleTests.imports {
      for name in imports {
        guard let height = heights[name] else { continue }
        #expect(heights[module, default: .max] < height, "\(module) imports \(name)")
      }
    }
  }

  @Test func importsAreOnThePage() throws {
    var listed: [String: Set<String>] = [:]
    for (table, cells) in try Page("Architecture").rows("## Modules") where table.hasPrefix("| module | imports |") {
      listed[Self.code(cells[0]).joined()] = Set(Self.code(cells[1]).map(String.init))
    }
    #expect(listed == RuleTests.imports.mapValues { $0.subtracting(["Synchronization"]) })
  }

  /// The tables have exactly the folders that contain Swift files. A folder stands in the table of its module, as
  /// `Module/Folder`, or beside its module.
  @Test func foldersAreOnTheArchitecturePage() throws {
    let page = try Page("Architecture")
    var listed: [String] = []
    for heading in page.file.lines where heading.hasPrefix("### ") {
      var module = String(heading.dropFirst(4))
      for (table, cells) in page.rows(String(heading)) {
        if table.hasPrefix("| folder |") {
          listed += Self.code(cells[0]).map { $0.contains("/") ? "\($0)" : "\(module)/\($0)" }
        } else if table.hasPrefix("| module | folders |") {
          module = Self.code(cells[0]).first.map(String.init) ?? module
          listed += Self.code(cells[1]).map { "\(module)/\($0)" }
        }
      }
    }
    let rooms = RoomTests.rooms.map { String($0.dropFirst("Sources/".count)) }
    #expect(rooms.count > 100)
    #expect(Set(listed).symmetricDifference(rooms) == [])
    #expect(Set(listed).count == listed.count)
  }

  @Test func productsAndInternalModulesAreOnThePage() throws {
    let page = try Page("Stability")
    let manifest = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
    let declared = manifest.matches(of: /\.(?:library|executable)\(name: "(\w+)", targets: \["(\w+)"/)
    let listed = page.rows("## Modules").flatMap { Self.code($0.cells[0]) }
    #expect(Set(listed) == Set(declared.map(\.output.1)))
    let internals = page.section("## Modules").drop { !$0.hasPrefix("All other modules") }.prefix { $0 != "" }
      .flatMap(Self.code).map(String.init).filter(Self.modules.contains)
    // The command's module is not for import.
    let products = Set(declared.map { String($0.output.2) })
    #expect(Set(internals) == Self.modules.subtracting(products).filter { !$0.hasPrefix("CLarkspur") })
  }

  // MARK: - Names

  /// Files and folders that a page names exist. A path begins at the root, or anywhere in the folders of the sources.
  /// Others are those of a reader's own package, and examples of a rule.
  @Test func filesOnPagesExist() {
    let folders = ["Sources", "Tests", "Fuzz", "Benchmarks", "Examples", ".ci", ".github"]
    let files = folders.flatMap { Repository.files(under: $0).map { "/" + $0.path } }
    let others = [
      "Package.swift", "Sources/hello/main.swift", "Sources/fetch/main.swift", "Sources/M/Folder/Name.swift",
      "Tests/MTests/Folder/NameTests.swift",
    ]
    var count = 0
    for page in Self.pages {
      for (number, line) in page.lines.enumerated() where line.contains("`") {
        for path in Self.code(line).map({ $0.prefix { $0 != " " } }) {
          guard !path.contains("*"), !path.contains("..."), !others.contains(String(path)) else { continue }
          let isThere: Bool
          if path.hasSuffix(".swift"), path.first?.isUppercase == true {
            isThere = files.contains { $0.hasSuffix("/" + path) }
          } else if folders.contains(where: { path.hasPrefix("\($0)/") }) {
            isThere = FileManager.default.fileExists(atPath: Repository.root.appending(path: String(path)).path)
          } else {
            continue
          }
          if !isThere { Issue.record("\(page.path):\(number + 1): there is no \(path)") }
          count += 1
        }
      }
    }
    #expect(count > 100)
  }

  /// Types, functions and modules that the page Architecture names exist, and so do the modules that decisions name.
  @Test func namesOnPagesExist() throws {
    let architecture = try Page("Architecture").file
    // Folders and files have their own tests, and tests of rules as well.
    let body = architecture.lines.prefix { $0 != "## Rules that tests hold" }
    for (number, line) in body.enumerated() where line.contains("`") {
      for text in Self.code(line) where !text.contains("/") && !text.contains(".swift") && !text.contains("-") {
        for name in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" })
        where !Self.words.contains(String(name)) && !Self.modules.contains(String(name)) && !Self.isPlace(name) {
          Issue.record("\(architecture.path):\(number + 1): there is no \(name)")
        }
      }
    }
    for page in Self.pages where page.path.contains("/Decisions/0") {
      for (number, line) in page.lines.enumerated() {
        for text in Self.code(line) where text.hasPrefix("CLarkspur") && !text.contains(".") {
          #expect(Self.modules.contains(String(text)), "\(page.path):\(number + 1)")
        }
      }
    }
  }

  private static func isPlace(_ name: Substring) -> Bool {
    RoomTests.rooms.contains { $0.hasSuffix("/\(name)") }
      || RuleTests.sources.contains { $0.path.hasSuffix("/\(name).swift") }
  }

  // MARK: - Locks, tests, fuzz targets

  /// The section names each lock with an order by its type, and all others by their file.
  @Test func locksAreOnThePage() throws {
    let modules = [
      "LarkspurBytes", "LarkspurIO", "LarkspurTLS", "LarkspurTransport", "LarkspurEngine", "LarkspurClient",
      "LarkspurTransfers", "LarkspurTransferServer", "Larkspur",
    ]
    let section = try Page("Architecture").section("## Locks")
    let named = Set(section.flatMap(Self.code).map { String($0.prefix { $0 != "." }) })
    let declaration = try Regex("\\b(let|var) \\w+(: | = )(Adaptive)?Mutex\\b")
    var files: Set<String> = []
    for file in RuleTests.sources where modules.contains(file.module) {
      guard file.code.contains(where: { $0.contains(declaration) }) else { continue }
      let name = file.path.split(separator: "/").last?.prefix { $0 != "+" && $0 != "." } ?? ""
      files.insert(String(name))
      if !named.contains(String(name)) { Issue.record("the page Architecture lacks the lock of \(file.path)") }
    }
    #expect(files.count > 40)
    let others = try Page("Architecture").rows("## Locks").filter { $0.table.hasPrefix("| module |") }.flatMap {
      Self.code($0.cells[1]).map(String.init)
    }
    #expect(Set(others).subtracting(files) == [])
  }

  /// The table has the tests of the rules, and no others.
  @Test func rulesAreOnThePage() throws {
    let listed = try Page("Architecture").rows("## Rules that tests hold").flatMap { Self.code($0.cells[0]) }
    let tests = Repository.files(under: "Tests/LarkspurRepositoryTests")
    let suites = Set(tests.flatMap { $0.text.matches(of: /struct (\w+Tests)\b/).map(\.output.1) })
    let functions: (Repository.File) -> [Substring] = { file in
      file.text.matches(of: /@Test(?:\([^\n]*\))?\s+func (\w+)/).map(\.output.1)
    }
    for name in listed where !suites.contains(name) && !tests.contains(where: { functions($0).contains(name) }) {
      Issue.record("there is no test \(name)")
    }
    let rules = ["/RuleTests.swift", "/RoomTests.swift", "/PageTests.swift"]
    for file in tests where rules.contains(where: file.path.hasSuffix) {
      #expect(Set(functions(file)).subtracting(listed) == [], "the page lacks these tests")
    }
  }

  @Test func fuzzTargetsAreOnThePage() throws {
    let section = try Page("Contributing").section("### Fuzzing").drop { !$0.hasPrefix("The targets are") }
    let listed = section.prefix { !$0.hasPrefix("`Fuzz/Oracles`") }.flatMap(Self.code).map(String.init)
    let folders = Repository.files(under: "Fuzz").compactMap { file in
      file.path.split(separator: "/").dropFirst().first.map(String.init)
    }
    let targets = Set(folders).subtracting(["Driver", "Oracles"])
    #expect(Set(listed) == targets)
    let manifest = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
    for target in targets { #expect(manifest.contains("\"\(target)\"")) }
  }
}
