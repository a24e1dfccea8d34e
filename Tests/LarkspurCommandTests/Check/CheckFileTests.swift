import Foundation
import LarkspurCommand
import Testing

/// Tests what `larkspur check` reads of a program, and of the compiler's files.
@Suite struct CheckFileTests {
  private static func findings(_ program: BuiltProgram) throws -> [Finding] {
    let directory = try CheckedDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try LinkedFile.all(from: program.build("program", in: directory)).flatMap(\.findings)
  }

  @Test(
    arguments: [
      ([], []), (["libc.so.6", "libFoundation.so", "libFoundationEssentials.so", "libmycurl.so", "libcurlish"], []),
      (["libFoundationNetworking.so"], ["libFoundationNetworking.so"]),
      (["libc.so.6", "libcurl.so.4", "libcurl-gnutls.so.4"], ["libcurl.so.4", "libcurl-gnutls.so.4"]),
    ] as [([String], [String])])
  func neededLibraries(libraries: [String], foreign: [String]) throws {
    let program = BuiltProgram(libraries: libraries, hasSwiftCode: true)
    #expect(try Self.findings(program) == foreign.map { .links(library: $0, file: nil) })
  }

  @Test(
    arguments: [
      (["$s20FoundationNetworking10URLSessionCMn"], [.holdsNetworking(file: nil)]),
      (["$s20FoundationNetworking10URLRequestVMn"], [.holdsNetworking(file: nil)]),
      // An extension of a type, and a type of Larkspur's own module.
      (["$s20FoundationNetworking10URLSessionC4progE4mineyyF"], []),
      (["$s20FoundationNetworking27_NSNonfileURLContentLoaderCMn", "$s8Larkspur10URLSessionCMn"], []),
      (["$s20FoundationNetworking10URLSessionCMnX", "$s20FoundationNetworking10URLSessionCM"], []),
      (["curl_easy_init", "Curl_open"], [.holdsCurl(file: nil)]),
      // A program that loads the library by itself has the names of its functions, and a wrapper may call them.
      (["curl_easy_init", "curl_easy_perform", "myCurl_open"], []),
    ] as [([String], [Finding])])
  func symbols(names: [String], expected: [Finding]) throws {
    for isStripped in [false, true] {
      // The names for the dynamic linker stay in a stripped file.
      let program = BuiltProgram(
        libraries: ["libswiftCore.so"], symbols: names, isStripped: isStripped, hasSwiftCode: true)
      #expect(try Self.findings(program) == expected)
    }
  }

  /// A program that loads the toolchain's module has the names of its types without defining them.
  @Test func symbolsOfALinkedModule() throws {
    let program = BuiltProgram(
      libraries: ["libFoundationNetworking.so"], symbols: ["$s20FoundationNetworking10URLSessionCMn"])
    #expect(try Self.findings(program) == [.links(library: "libFoundationNetworking.so", file: nil)])
  }

  @Test(
    arguments: [
      // A file that links the Swift libraries dynamically, or has no Swift code, cannot contain the module.
      ([], true, true, true), (["libswiftCore.so"], true, true, false), ([], false, true, false),
      ([], true, false, false),
    ] as [([String], Bool, Bool, Bool)])
  func strippedFiles(libraries: [String], hasSwiftCode: Bool, isStripped: Bool, isUnknown: Bool) throws {
    let program = BuiltProgram(libraries: libraries, isStripped: isStripped, hasSwiftCode: hasSwiftCode)
    #expect(try Self.findings(program) == (isUnknown ? [.undetermined(file: nil)] : []))
  }

  /// `ldd` lists nothing of a program at a fixed address that is linked statically.
  @Test func aStaticProgram() throws {
    let program = BuiltProgram(symbols: ["Curl_open"], options: ["-static", "-no-pie"])
    #expect(try Self.findings(program) == [.holdsCurl(file: nil)])
  }

  /// A text that is divided between two pieces of the file is found.
  @Test func largeFiles() throws {
    let directory = try CheckedDirectory()
    let bytes = try BuiltProgram.plain.get()
    for distance in 0...6 {
      let padding = [UInt8](repeating: 1, count: (1 << 20) - bytes.count - distance)
      let path = try directory.write(bytes + padding + Array("\0Curl_".utf8), to: "program")
      #expect(try LinkedFile.all(from: path).flatMap(\.findings) == [.holdsCurl(file: nil)])
    }
  }

  // MARK: - Damaged files

  private static func read(_ bytes: [UInt8]) throws {
    let directory = try CheckedDirectory()
    defer { withExtendedLifetime(directory) {} }
    _ = try ProgramFile(try directory.write(bytes, to: "program"))
  }

  private static func patched(_ offset: Int, _ bytes: [UInt8]) throws -> [UInt8] {
    var image = try BuiltProgram.plain.get()
    image.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return image
  }

  @Test(arguments: [
    (4, [1], "an ELF file for another kind of machine"), (5, [2], "an ELF file for another kind of machine"),
    (18, [0xff], "an ELF file for another kind of machine"),
    (16, [1], "an ELF file, but neither a program nor a shared library"),
    (16, [4], "an ELF file, but neither a program nor a shared library"), (0, [0x7e], "not an ELF file"),
  ])
  func otherFiles(offset: Int, bytes: [UInt8], message: String) throws {
    let error = #expect(throws: ProgramFile.Unreadable.self) { try Self.read(Self.patched(offset, bytes)) }
    #expect(error?.description == message)
  }

  /// Offsets and sizes outside the file, or that overflow, are errors.
  @Test(arguments: [.max, .max - 7, 1 << 63, 1 << 40, 0x1_0000] as [UInt64])
  func numbersOutOfRange(number: UInt64) throws {
    let image = try BuiltProgram.plain.get()
    func value(_ offset: Int, _ size: Int) -> Int {
      image[offset..<offset + size].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let wide = (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
    let names = value(40, 8) + value(62, 2) * 64
    for (offset, bytes) in [(40, wide), (names + 24, wide), (names + 32, wide), (58, [1, 0]), (62, [0xff, 0xff])] {
      #expect(throws: ProgramFile.Unreadable.self, "\(offset)") { try Self.read(Self.patched(offset, bytes)) }
    }
  }

  @Test func everyLength() throws {
    let image = try BuiltProgram.plain.get()
    try Self.read(image)
    for count in Array(0..<100) + Array(stride(from: 100, to: image.count, by: 997)) + [image.count - 1] {
      #expect(throws: ProgramFile.Unreadable.self) { try Self.read(Array(image.prefix(count))) }
    }
  }

  /// Damaged bytes in the header lead to an error or another result, but never to a trap.
  @Test func everyByte() throws {
    for offset in 0..<64 {
      for value: UInt8 in [0, 1, 0x7f, 0x80, 0xff] { try? Self.read(Self.patched(offset, [value])) }
    }
  }

  @Test(
    arguments: [
      ("", [], []), ("a.o : b.swift\n", ["a.o"], []), (" : \n:\n:", [], []), ("a.o", ["a.o"], []),
      ("/x/A b.o", ["b.o"], []), ("a.o: M.swiftmodule", ["a.o"], ["M.swiftmodule"]),
      (
        "/x/a\\ b.o : /y/c\\ d.swift \\\n  /z/M.swiftmodule\n/x/M.swiftmodule : /z/N.swiftmodule/x86.swiftinterface\n",
        ["/x/a b.o"], ["/z/M.swiftmodule", "/z/N.swiftmodule/x86.swiftinterface"]
      ),
      ("a.o b.o : $$M\\#.swiftmodule\r\n", ["a.o", "b.o"], ["$M#.swiftmodule"]),
      ("a.o : M.swiftmodule\\", ["a.o"], ["M.swiftmodule"]),
    ] as [(String, Set<String>, Set<String>)])
  func dependencyFiles(text: String, objects: Set<String>, modules: Set<String>) {
    let file = DependencyFile(Array(text.utf8))
    #expect(file.objects == objects)
    #expect(file.modules == modules)
  }
}
