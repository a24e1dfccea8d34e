import Foundation
import TestKit
import Testing

/// The project's rules, as far as a text search can check them.
@Suite(.ownThread) struct RuleTests {
  static let sources = Repository.files(under: "Sources")
  static let tests = Repository.files(under: "Tests")

  /// The modules that each module imports. Imports point one way; adding a line here is a design decision. The page
  /// Architecture has the list, too.
  static let imports: [String: Set<String>] = [
    "LarkspurBytes": ["Synchronization"],
    "LarkspurCoding": [],
    "LarkspurHTTP": ["LarkspurBytes"],
    "LarkspurIO": ["Glibc", "LarkspurBytes"],
    "LarkspurTLS": ["Glibc", "LarkspurBytes", "Synchronization"],
    "LarkspurTransfers": ["LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "Synchronization"],
    "LarkspurTransferServer": ["LarkspurBytes", "LarkspurIO", "LarkspurTransfers", "Synchronization"],
    "LarkspurTransport": ["LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "Synchronization"],
    "LarkspurEngine": [
      "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransport",
      "Synchronization",
    ],
    "LarkspurClient": [
      "LarkspurBytes", "LarkspurCoding", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
      "LarkspurTransport", "Synchronization",
    ],
    "LarkspurTestServer": [
      "CLarkspurTestServer", "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
      "Synchronization",
    ],
    "Larkspur": [
      "Dispatch", "Foundation", "FoundationEssentials", "LarkspurBytes", "LarkspurCoding", "LarkspurEngine",
      "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransfers", "LarkspurTransport", "Synchronization",
    ],
    "FoundationNetworking": ["Foundation", "Larkspur"],
    "AFNetworking": ["Dispatch", "Foundation", "Larkspur", "Synchronization"],
    "AFNetworkingXML": ["AFNetworking", "Foundation", "FoundationXML", "Larkspur", "Synchronization"],
    "ZipArchive": ["Foundation", "Glibc", "LarkspurBytes", "LarkspurIO", "Synchronization"],
    "LarkspurCommand": [
      "Dispatch", "Foundation", "Glibc", "Larkspur", "LarkspurBytes", "LarkspurConsole", "LarkspurEngine",
      "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransferServer", "LarkspurTransfers", "LarkspurTransport",
      "Synchronization",
    ],
    "LarkspurDemonstration": [
      "AFNetworking", "Dispatch", "Foundation", "Glibc", "Larkspur", "LarkspurBytes", "LarkspurConsole", "LarkspurHTTP",
      "LarkspurIO", "LarkspurTLS", "LarkspurTestServer", "LarkspurTransfers", "LarkspurTransport", "Synchronization",
    ],
    "LarkspurConsole": ["LarkspurBytes", "LarkspurIO", "LarkspurTLS", "Synchronization"],
  ]

  @Test func importsPointOneWay() {
    var unused = Self.imports
    for file in Self.sources {
      let allowed = Self.imports[file.module]
      #expect(allowed != nil, "\(file.path): the module \(file.module) is not in the table")
      for name in Self.importedModules(file) where unused[file.module]?.remove(name) == nil {
        if allowed?.contains(name) == false { Issue.record("\(file.path) imports \(name)") }
      }
    }
    for (module, names) in unused where !names.isEmpty {
      Issue.record("\(module) may import \(names.sorted()), and no file of it does")
    }
  }

  /// The modules that a program with `LarkspurClient` is made of.
  private static var clientModules: Set<String> {
    var reached: Set<String> = []
    var next: Set<String> = ["LarkspurClient"]
    while let module = next.popFirst() {
      reached.insert(module)
      next.formUnion((imports[module] ?? []).subtracting(reached))
    }
    return reached
  }

  /// One import of Foundation anywhere adds its classes and ICU to a static program.
  @Test func theClientNeedsNoFoundation() {
    let modules = Self.clientModules
    #expect(modules.isSuperset(of: ["LarkspurEngine", "LarkspurTransport", "LarkspurTLS", "LarkspurCoding"]))
    #expect(modules.isDisjoint(with: ["Dispatch", "Foundation", "FoundationEssentials", "Larkspur"]))
  }

  /// The algorithms of collections that the standard library has beside its regular expressions add 1 MB, the parser of
  /// regular expressions, to a static program.
  @Test func theClientNeedsNoRegularExpressions() {
    let algorithms = [".firstRange(of:", ".ranges(of:", ".replacing(", ".trimmingPrefix(", ".firstMatch(", "Regex("]
    for file in Self.sources where Self.clientModules.contains(file.module) {
      for (number, line) in file.lines.enumerated() where !line.drop(while: \.isWhitespace).hasPrefix("//") {
        let separator = line.components(separatedBy: "split(separator: \"").dropFirst().first
        let splitsByText = (separator?.prefix { $0 != "\"" && $0 != "\\" }.count ?? 0) > 1
        if splitsByText || algorithms.contains(where: line.contains) {
          Issue.record("\(file.path):\(number + 1): \(line)")
        }
      }
    }
  }

  static func importedModules(_ file: Repository.File) -> [String] {
    file.code.compactMap { line in
      let tokens = line.split(whereSeparator: \.isWhitespace)
      // Matches `import X`, `public import X`, `@preconcurrency import struct X.Y`.
      guard let index = tokens.firstIndex(of: "import"), index + 1 < tokens.count,
        tokens[..<index].allSatisfy({ $0.hasPrefix("@") || ["public", "package", "internal", "private"].contains($0) })
      else { return nil }
      let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
      let name = kinds.contains(tokens[index + 1]) ? tokens[tokens.count - 1] : tokens[index + 1]
      return String(name.prefix { $0 != "." })
    }
  }

  /// The command's use of sessions shows what programs can do, so it uses the public API and nothing beneath. Of the
  /// transport it may use the loop that the command's main thread runs.
  @Test func theCommandsSessionsArePublic() {
    let files = Self.sources.filter { $0.directory == "Sources/LarkspurCommand/Session" }
    #expect(!files.isEmpty)
    for file in files {
      for name in Self.importedModules(file) where ["LarkspurHTTP", "LarkspurTLS"].contains(name) {
        Issue.record("\(file.path) imports \(name)")
      }
    }
  }

  /// No source imports the module that Larkspur replaces, or the library beneath that module.
  @Test func noSourceImportsFoundationNetworking() {
    let files = Repository.files(under: "Sources", suffixes: [".swift", ".h", ".c", ".modulemap"])
    for file in files {
      for (number, line) in file.code.enumerated()
      where line.contains("import FoundationNetworking") || line.contains("curl/") || line.contains("libcurl") {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  static let unsafeDirectorys: Set<String> = [
    "Sources/LarkspurBytes/Storage", "Sources/LarkspurBytes/Scan", "Sources/LarkspurIO/Unsafe",
    "Sources/LarkspurCoding/Zlib", "Sources/LarkspurTransport/Loop", "Sources/LarkspurTLS/OpenSSL",
    "Sources/LarkspurTestServer/OpenSSL", "Sources/Larkspur/Unsafe", "Sources/AFNetworking/Unsafe",
    "Sources/ZipArchive/Unsafe",
  ]

  @Test func unsafeHasItsRooms() {
    for file in Self.sources where !Self.unsafeDirectorys.contains(file.directory) {
      for (number, line) in file.code.enumerated() where line.hasWord("unsafe") {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// Maximum number of `unsafe` lines without an explanation, which is `Safe:` or `@unsafe` within the ten lines
  /// before, on the line itself or on the next one. The numbers only fall.
  static let unexplainedMax: [String: Int] = [
    "Sources/LarkspurBytes/Scan": 23, "Sources/LarkspurBytes/Storage": 3, "Sources/LarkspurIO/Unsafe": 24,
    "Sources/LarkspurCoding/Zlib": 1, "Sources/LarkspurTransport/Loop": 7,
  ]

  @Test func unsafeIsExplained() {
    var unexplained: [String: [String]] = [:]
    for file in Self.sources {
      let lines = file.lines
      for (number, line) in file.code.enumerated() where line.hasWord("unsafe") && !line.contains("@unsafe") {
        let reach = lines[max(number - 10, 0)...min(number + 1, lines.count - 1)]
        guard !reach.contains(where: { $0.contains("Safe:") || $0.contains("@unsafe") }) else { continue }
        unexplained[file.directory, default: []].append("\(file.path):\(number + 1)")
      }
    }
    for (directory, places) in unexplained {
      #expect(places.count <= Self.unexplainedMax[directory, default: 0], "\(places.joined(separator: ", "))")
    }
  }

  @Test(arguments: ["try!", "as!", "fatalError", "preconditionFailure", "precondition(", "unowned "])
  func nothingTraps(word: String) {
    for file in Self.sources {
      for (number, line) in file.code.enumerated() where line.contains(word) {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// Names below the products that only tests use: counts of what is in use, and what a program cannot ask for yet.
  static let namesForTests: Set<String> = [
    "chunkBytesLent", "forgetSessions", "isTunnel", "peerProcess", "queuedCount",
    "runningCount", "slotsInUse", "threadCount", "waiterCount",
  ]

  /// Each public or package declaration below the products has a user under Sources: its name occurs more often than
  /// its declarations. Members of Swift's own protocols have users there.
  @Test func everyDeclarationHasAUser() throws {
    let products: Set<String> = [
      "Larkspur", "LarkspurClient", "FoundationNetworking", "AFNetworking", "AFNetworkingXML", "ZipArchive",
      "LarkspurTestServer", "LarkspurCommand", "LarkspurDemonstration",
    ]
    let keywords = "func|var|let|struct|class|enum|protocol|typealias|case|actor"
    let declaration = try Regex("\\b(?:\(keywords)) +`?(\\w+)", as: (Substring, Substring).self)
    let shared = try Regex("\\b(?:public|package)\\b(?: +[\\w()]+)* +(?:\(keywords)) +`?\\w+")
    var uses: [Substring: Int] = ["customMirror": 1]
    var places: [Substring: String] = [:]
    for file in Self.sources {
      // Texts count as users: an interpolation is one.
      for line in file.lines where !line.drop(while: { $0 == " " }).hasPrefix("//") {
        for word in line.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" }) {
          uses[word, default: 0] += 1
        }
      }
      for (number, line) in file.code.enumerated() {
        guard let name = line.firstMatch(of: declaration)?.output.1 else { continue }
        uses[name, default: 0] -= 1
        if !products.contains(file.module), line.contains(shared) { places[name] = "\(file.path):\(number + 1)" }
      }
    }
    let unused = places.filter { uses[$0.key, default: 0] <= 0 }
    for (name, place) in unused where !Self.namesForTests.contains(String(name)) {
      Issue.record("\(place): \(name) has no user")
    }
    #expect(Self.namesForTests.subtracting(unused.keys.map(String.init)) == [])
  }

  /// A program with more rights than its caller (setuid) trusts no variable of its environment: sources read it through
  /// `EnvironmentVariable`, and C through `secure_getenv`. The demonstration starts itself again. AFNetworking reads the languages and the width of a terminal,
  /// which name no file.
  @Test func theEnvironmentIsReadSafely() {
    let files = Repository.files(under: "Sources", suffixes: [".swift", ".h", ".c"])
    for file in files where !["AFNetworking", "LarkspurCommand", "LarkspurDemonstration"].contains(file.module) {
      for (number, line) in file.code.enumerated()
      where line.hasWord("getenv") || line.contains("processInfo.environment") || line.hasWord("environ") {
        // `EnvironmentVariable` and the start of other programs use the list of this file.
        let isList = line.hasWord("environ") && file.path.hasSuffix("/CLarkspurLinux.c")
        if !isList { Issue.record("\(file.path):\(number + 1): \(line)") }
      }
    }
  }

  @Test func noTestSleeps() {
    for file in Self.tests {
      for (number, line) in file.code.enumerated() where ["sleep", "usleep", "nanosleep"].contains(where: line.hasWord)
      {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// Swift's threads block SIGTERM, and a process that a test starts inherits that. A server that outlives the tests keeps
  /// their output open, and the command that reads it waits for ever: tests end processes by SIGKILL.
  @Test func noTestTerminatesProcesses() {
    for file in Self.tests {
      for (number, line) in file.code.enumerated() where line.contains(".terminate()") {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
    }
  }

  /// Whether the line is an empty loop whose condition only another thread can change: it reads a variable or a state,
  /// and calls nothing that makes progress.
  private static func isBusyWait(_ line: String) -> Bool {
    guard let condition = line.firstMatch(of: /\bwhile (.*)\{ *\}/)?.output.1 else { return false }
    return !condition.contains("(") || condition.contains("withLock") || condition.contains(".load(")
  }

  @Test(arguments: [
    ("while !isDone {}", true), ("while state.withLock({ $0 == 0 }) {}", true),
    ("while count.load(ordering: .relaxed) < 3 { }", true), ("while try await next() != nil {}", false),
    ("while isOpen, readPart() {}", false), ("while !isDone { wait() }", false),
  ])
  func busyWaits(line: String, isBusy: Bool) { #expect(Self.isBusyWait(line) == isBusy) }

  /// A loop that yields takes a core from the tests beside it: `Event` and `Wait` of TestKit suspend.
  @Test func noTestWaitsBusily() {
    for file in Self.tests {
      for (number, line) in file.code.enumerated() where Self.isBusyWait(line) {
        Issue.record("\(file.path):\(number + 1): \(line)")
      }
      for (number, line) in file.code.enumerated() where line.contains("Task.yield()") || line.hasWord("sched_yield") {
        let depth = line.prefix { $0 == " " }.count
        let outer = file.code[..<number].last { !$0.isEmpty && $0.prefix { $0 == " " }.count < depth } ?? ""
        if [line, outer].contains(where: { $0.hasWord("while") || $0.hasWord("repeat") }) {
          Issue.record("\(file.path):\(number + 1): \(line)")
        }
      }
    }
  }

  @Test func filesAreShort() {
    for directory in ["Sources", "Tests", "Fuzz", "Benchmarks", "Examples"] {
      for file in Repository.files(under: directory) {
        #expect(file.lines.count <= 600, "\(file.path) has \(file.lines.count) lines")
      }
    }
  }

  /// The entries that are allowed at the top level, and those that tools leave there.
  static let topLevel: Set<String> = [
    ".ci", ".editorconfig", ".github", ".gitignore", ".swift-format", "Benchmarks", "Examples", "Fuzz", "LICENSE",
    "Package.swift", "README.md", "Sources", "Tests",
  ]
  static let leftByTools: Set<String> = [
    ".git", ".build", ".swiftpm", ".vscode", ".index-build", ".DS_Store", "Package.resolved",
  ]

  @Test func theTopLevelIsTidy() throws {
    let names = Set(try FileManager.default.contentsOfDirectory(atPath: Repository.root.path))
    #expect(names.subtracting(Self.topLevel).subtracting(Self.leftByTools) == [])
  }

  /// The command does not link libcurl: the names of the libraries that a program links are text in its file. The
  /// command's own messages about them lack the `.so`.
  @Test func theCommandLinksNoCurl() throws {
    let program = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let command = program.deletingLastPathComponent().appending(path: "larkspur")
    let data = try Data(contentsOf: command)
    // The search finds a name that is there.
    #expect(data.firstRange(of: Data("libc.so".utf8)) != nil)
    for library in ["libcurl.so", "libFoundationNetworking.so"] {
      #expect(data.firstRange(of: Data(library.utf8)) == nil, "\(command.path) needs \(library)")
    }
  }
}
