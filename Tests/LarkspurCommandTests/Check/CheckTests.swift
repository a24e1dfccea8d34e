import Foundation
import LarkspurCommand
import LarkspurIO
import Testing

/// Tests the whole of `larkspur check` on files.
@Suite struct CheckTests {
  private static let foreignModule =
    "/toolchain/linux/FoundationNetworking.swiftmodule/x86_64-unknown-linux-gnu.swiftmodule"

  private func check(_ programs: String...) async throws -> Command.Result {
    try await Command(["check"] + programs).end()
  }

  /// The lines about programs, without the directories of their paths.
  private func lines(_ result: Command.Result) -> [String] {
    result.text.split(separator: "\n").filter { $0.hasPrefix("/") }.map { line in
      String(line[line.index(after: line.lastIndex(of: "/") ?? line.startIndex)...])
    }
  }

  /// The command itself, which contains neither FoundationNetworking nor libcurl.
  @Test func aRealProgram() async throws {
    let bundle = try FilePaths.resolved("/proc/self/exe")
    let command = bundle.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/larkspur"
    let result = try await check(command)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text == "\(command): nothing of FoundationNetworking or libcurl\n")
    #expect(result.errors == "")
  }

  @Test func findings() async throws {
    let directory = try CheckedDirectory()
    let program = BuiltProgram(libraries: ["libcurl.so.4", "libFoundationNetworking.so"], symbols: ["Curl_open"])
    let result = try await check(try program.build("program", in: directory))
    #expect(result.status == 110)
    #expect(
      lines(result) == [
        "program: links libcurl.so.4", "program: links libFoundationNetworking.so", "program: holds libcurl",
      ])
    #expect(
      result.text.hasSuffix("  swift package clean\n  swift build --target FoundationNetworking\n  swift build\n"))
    #expect(result.errors == "")
  }

  @Test func severalPrograms() async throws {
    let directory = try CheckedDirectory()
    let good = try BuiltProgram().build("good", in: directory)
    let bad = try BuiltProgram(libraries: ["libcurl.so.4"]).build("bad", in: directory)
    let unknown = try BuiltProgram(isStripped: true, hasSwiftCode: true).build("unknown", in: directory)
    let text = try directory.write("text", to: "text")
    let stripped = try BuiltProgram(isStripped: true).build("stripped", in: directory)
    #expect(try await check(good, good).status == 0)
    #expect(try await check(good, bad, unknown, text).status == 110)
    #expect(try await check(unknown, text, good).status == 26)
    let result = try await check(good, unknown)
    #expect(result.status == 111)
    #expect(
      lines(result) == [
        "good: nothing of FoundationNetworking or libcurl",
        "unknown: links Swift's libraries statically and is stripped of its symbols: check it unstripped",
      ])
    #expect(!result.text.contains("swift build"))
    #expect(
      try await check(stripped).text.hasSuffix(" (stripped: a libcurl that is linked statically would not be seen)\n"))
  }

  @Test func unreadableFiles() async throws {
    let directory = try CheckedDirectory()
    let text = try directory.write("text", to: "te\u{1b}xt")
    let short = try directory.write(Array(BuiltProgram.plain.get().dropLast()), to: "short")
    for (path, message) in [
      (text, "te\\x1bxt: not an ELF file"), (directory.path, "Is a directory (EISDIR)"),
      ("/dev/null", "not a regular file"),
      (directory.path + "/none", "none: No such file or directory (ENOENT)"),
      (short, "the file is damaged, or cut short"),
    ] {
      let result = try await check(path)
      #expect(result.status == 26)
      #expect(result.errors.hasPrefix("larkspur: could not read /") && result.errors.hasSuffix("\(message)\n"))
      #expect(result.output == [])
    }
  }

  @Test func withoutLdd() async throws {
    let directory = try CheckedDirectory()
    defer { withExtendedLifetime(directory) {} }
    let program = try BuiltProgram().build("program", in: directory)
    let result = try await Command(["check", program], environment: ["PATH": "/none"]).end()
    #expect(result.status == 26)
    #expect(result.errors.contains("/program: there is no ldd, "))
  }

  /// Control characters in names are escaped before they reach a terminal.
  @Test func namesForTerminals() async throws {
    let directory = try CheckedDirectory()
    let path = try BuiltProgram(libraries: ["libcurl\u{1b}[31m.so"]).build("pro\u{9b}gram", in: directory)
    #expect(lines(try await check(path)) == ["pro\\x9bgram: links libcurl\\x1b[31m.so"])
  }

  @Test(arguments: ["/lib:$ORIGIN", "$ORIGIN", "${ORIGIN}/../bin:$ORIGINAL"])
  func librariesBeside(path: String) async throws {
    let directory = try CheckedDirectory()
    // The two libraries need each other.
    let one = BuiltProgram(libraries: ["libTwo.so", "libcurl.so.4"], searchPath: "$ORIGIN/sub:$ORIGIN")
    let two = BuiltProgram(libraries: ["libOne.so"], searchPath: "$ORIGIN/..", symbols: ["Curl_open"])
    try one.build("bin/libOne.so", in: directory)
    try two.build("bin/sub/libTwo.so", in: directory)
    // What libcurl contains is no finding of its own.
    try BuiltProgram(symbols: ["Curl_open"]).build("bin/libcurl.so.4", in: directory)
    let program = try BuiltProgram(libraries: ["libc.so.6", "libOne.so", "libNone.so"], searchPath: path)
      .build("bin/program", in: directory)
    let result = try await check(program)
    #expect(result.status == 110)
    #expect(lines(result) == ["program: libOne.so links libcurl.so.4", "program: libTwo.so holds libcurl"])
    try directory.write("text", to: "bin/sub/libTwo.so")
    let failure = try await check(program)
    #expect(failure.status == 26)
    #expect(failure.errors.contains("bin/program: ldd cannot list its libraries: "))
    #expect(failure.errors.contains("/libTwo.so: "))
  }

  @Test(arguments: ["/elsewhere", "$ORIGINAL", "lib", "", "$ORIGIN/../other"])
  func librariesElsewhere(path: String) async throws {
    let directory = try CheckedDirectory()
    try directory.write("text", to: "bin/libOne.so")
    let program = BuiltProgram(libraries: ["libOne.so"], searchPath: path.isEmpty ? nil : path)
    #expect(try await check(try program.build("bin/program", in: directory)).status == 0)
  }

  // MARK: - Build directories

  private struct Target {
    var name = "Third"
    var modules: [String] = []
    /// The ages in seconds of SwiftPM's list of the target's sources, of Larkspur's modules, of the dependency file and
    /// of the compiler driver's record.
    var planAge: Double? = 40.0
    var moduleAge = 50.0
    var age = 10.0
    var recordAge: Double?
    var isLinked: Bool?
    /// The modules that the target's compilation waits for, according to SwiftPM, or `nil` for no manifest.
    var inputs: [String]?
  }

  private func lines(_ target: Target, product: String = "program") async throws -> [String] {
    let directory = try CheckedDirectory()
    return try await lines(target, product: product, in: directory)
  }

  private func lines(_ target: Target, product: String, in directory: CheckedDirectory) async throws -> [String] {
    let folder = "triple/debug/"
    for module in ["Larkspur", "LarkspurBytes", "FoundationNetworking"] {
      try directory.write("", to: "\(folder)Modules/\(module).swiftmodule", age: target.moduleAge)
    }
    if let inputs = target.inputs {
      let paths = inputs.map { "\"/moved/Modules/\($0).swiftmodule\"" }.joined(separator: ",")
      try directory.write(
        """
          "C.Third-triple-debug.module":
            inputs: [\(paths)]
            outputs: ["/moved/Third.build/A.o","/moved/Modules/\(target.name).swiftmodule"]
          "C.Larkspur-triple-debug.module":
            inputs: ["/moved/Modules/LarkspurBytes.swiftmodule"]
            outputs: ["/moved/Modules/Larkspur.swiftmodule"]

        """, to: "debug.yaml")
    }
    if let age = target.planAge { try directory.write("", to: "\(folder)\(target.name).build/sources", age: age) }
    let object = "/moved/\(target.name).build/A file.swift.o"
    let modules = target.modules.joined(separator: " ")
    try directory.write(
      "\(object.replacing(" ", with: "\\ ")) : /source/A\\ file.swift \(modules)\n",
      to: "\(folder)\(target.name).build/A file.d",
      age: target.age)
    if let age = target.recordAge {
      try directory.write("", to: "\(folder)\(target.name).build/primary.priors", age: age)
    }
    if let isLinked = target.isLinked {
      let stem = product.split(separator: ".").first.map(String.init) ?? ""
      let name = stem.hasPrefix("lib") ? String(stem.dropFirst(3)) : stem
      try directory.write(
        isLinked ? "/x.o\n'\(object)'\n" : "/x.o\n", to: "\(folder)\(name).product/Objects.LinkFileList")
    }
    let result = try await check(try directory.write(try BuiltProgram.plain.get(), to: folder + product))
    let lines = lines(result)
    let messages = lines.map { String($0.dropFirst(product.count + 2)) }
    let status: Int32 = messages == Self.nothing ? 0 : messages == Self.unclear ? 111 : 110
    #expect(result.status == status)
    return messages
  }

  private static let nothing = ["nothing of FoundationNetworking or libcurl"]
  private static let foreign = ["the target Third was compiled against the toolchain's FoundationNetworking"]
  private static let old = ["the target Third was compiled before Larkspur was last built, and may crash"]
  private static let unclear = [
    "whether the target Third was compiled before Larkspur was last built cannot be determined"
  ]

  @Test(arguments: [
    ([foreignModule], foreign), (["/moved/Modules/FoundationNetworking.swiftmodule"], nothing),
    (["/toolchain/linux/Foundation.swiftmodule/x.swiftmodule"], nothing), ([], nothing),
    (["/moved/Modules/Larkspur.swiftmodule", foreignModule], foreign),
    (["/moved/Modules/FoundationNetworkingExtras.swiftmodule"], nothing),
  ])
  func modulesOfTargets(modules: [String], expected: [String]) async throws {
    #expect(try await lines(Target(modules: modules)) == expected)
  }

  @Test func targetsThatAreNotNamed() async throws {
    for name in ["Larkspur", "FoundationNetworking", "AFNetworking", "Third-tool"] {
      #expect(try await lines(Target(name: name, modules: [Self.foreignModule])) == Self.nothing)
    }
  }

  @Test(arguments: ["program", "program.xctest", "libprogram.so"])
  func linkedTargets(product: String) async throws {
    for (isLinked, expected) in [(true, Self.foreign), (false, Self.nothing)] {
      let target = Target(modules: [Self.foreignModule], isLinked: isLinked)
      #expect(try await lines(target, product: product) == expected)
    }
  }

  @Test(
    arguments: [
      ("Larkspur", 5.0, nil, old), ("LarkspurBytes", 5, nil, old), ("FoundationNetworking", 5, nil, old),
      ("Other", 5, nil, nothing), ("Larkspur", 40, nil, nothing), ("Larkspur", 50, nil, nothing),
      // The module changed while the target may have been compiled.
      ("Larkspur", 10, nil, unclear), ("Larkspur", 39, nil, unclear),
      // The driver has checked the target after the module changed, or before.
      ("Larkspur", 5, 4.0, unclear), ("Larkspur", 5, 6, old),
    ] as [(String, Double, Double?, [String])])
  func oldTargets(module: String, moduleAge: Double, recordAge: Double?, expected: [String]) async throws {
    let target = Target(
      modules: ["/moved/Modules/\(module).swiftmodule"], moduleAge: moduleAge, recordAge: recordAge)
    #expect(try await lines(target) == expected)
  }

  /// What a target has read is certain if SwiftPM has compiled the target after Larkspur, or for the first time since.
  @Test(
    arguments: [
      (nil, 40.0, unclear), (["Larkspur"], 40, nothing), (["Other"], 40, unclear), ([], 40, unclear),
      (["Larkspur"], nil, nothing), (nil, nil, unclear), (nil, 30, unclear), (nil, 20, nothing),
    ] as [([String]?, Double?, [String])])
  func targetsAroundLarkspur(inputs: [String]?, planAge: Double?, expected: [String]) async throws {
    for module in ["Larkspur", "LarkspurBytes"] {
      let target = Target(
        modules: ["/moved/Modules/\(module).swiftmodule"], planAge: planAge, moduleAge: 25, inputs: inputs)
      #expect(try await lines(target) == expected)
    }
  }

  @Test func mending() async throws {
    let directory = try CheckedDirectory()
    let folder = directory.path + "/triple/debug"
    let target = Target(modules: [Self.foreignModule], inputs: [])
    #expect(try await lines(target, product: "program", in: directory) == Self.foreign)
    // Without this file SwiftPM has not made the directory.
    let foreign = try await check("--mend", folder)
    #expect(foreign.text.contains("\n  swift package clean\n"))
    #expect(FileManager.default.fileExists(atPath: folder + "/Third.build/A file.d"))
    try directory.write("{}", to: "triple/debug/Third.build/output-file-map.json")
    for name in ["Third.swiftmodule", "Third.o", "Thirdly.swiftmodule"] {
      try directory.write("", to: "triple/debug/Modules/\(name)")
    }
    try directory.write("", to: "triple/debug/Thirdly.build/sources")
    try directory.write("", to: "elsewhere/file")
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/Third.build/link", withDestinationPath: directory.path + "/elsewhere")
    let advice = "  swift build --target FoundationNetworking\n  swift build\n"
    let paths =
      ["Third.build", "Modules/Third.o", "Modules/Third.swiftmodule"].map { "\(folder)/\($0)" }
      + [directory.path + "/debug.yaml"]
    for path in [folder + "/program", folder] {
      let result = try await check(path)
      #expect(result.status == 110)
      #expect(result.text.hasSuffix("\n  rm -r \(paths.joined(separator: " "))\n\(advice)"))
    }
    let mended = try await check("--mend", folder + "/program", folder)
    #expect(mended.status == 110)
    #expect(mended.text.hasSuffix(":\n\(advice)"))
    for path in paths { #expect(!FileManager.default.fileExists(atPath: path)) }
    for name in ["Modules/Thirdly.swiftmodule", "Modules/Larkspur.swiftmodule", "Thirdly.build/sources", "program"] {
      #expect(FileManager.default.fileExists(atPath: "\(folder)/\(name)"))
    }
    #expect(FileManager.default.fileExists(atPath: directory.path + "/elsewhere/file"))
    let result = try await check("--mend", folder)
    #expect(result.status == 0)
    #expect(result.text == "\(folder): no target was compiled against another networking\n")
  }

  @Test func unreadDependencies() async throws {
    let directory = try CheckedDirectory()
    try FileManager.default.createDirectory(
      atPath: directory.path + "/Third.build/A.d", withIntermediateDirectories: true)
    let result = try await check(try directory.write(try BuiltProgram.plain.get(), to: "program"))
    #expect(result.status == 111)
    #expect(lines(result) == ["program: some of the files that tell how its targets were compiled could not be read"])
  }

  @Test func everyTargetOfOursIsKnown() throws {
    let root = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: root + "/Sources")) == OwnModules.names)
  }
}
