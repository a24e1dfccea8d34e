import LarkspurCommand
import Testing

/// Tests the parser of ELF files on bytes in memory.
@Suite struct CheckFileTests {
  private static func findings(_ bytes: [UInt8]) throws(ELFError) -> [Finding] {
    try LinkedFile(ProgramBytes(bytes), path: "/folder/program", name: nil).findings
  }

  private static func findings(_ image: ELFImage) throws(ELFError) -> [Finding] { try findings(image.bytes) }

  @Test(
    arguments: [
      ([], []), (["libc.so.6", "libssl.so.3"], []),
      (["libFoundation.so", "libFoundationEssentials.so", "libmycurl.so", "libcurlish"], []),
      (["libFoundationNetworking.so"], ["libFoundationNetworking.so"]),
      (["libc.so.6", "libcurl.so.4", "libcurl-gnutls.so.4"], ["libcurl.so.4", "libcurl-gnutls.so.4"]),
    ] as [([String], [String])])
  func neededLibraries(libraries: [String], foreign: [String]) throws {
    let image = ELFImage(libraries: libraries, hasSwiftCode: true)
    #expect(try Self.findings(image) == foreign.map { .links(library: $0, file: nil) })
  }

  @Test(
    arguments: [
      ("$s20FoundationNetworking10URLSessionCMn", true, [.holdsNetworking(file: nil)]),
      ("$s20FoundationNetworking10URLRequestVMn", true, [.holdsNetworking(file: nil)]),
      ("$s20FoundationNetworking10URLSessionCMn", false, []),
      // An extension of a type, and a type of Larkspur's own module.
      ("$s20FoundationNetworking10URLSessionC4progE4mineyyF", true, []),
      ("$s20FoundationNetworking27_NSNonfileURLContentLoaderCMn", true, []),
      ("$s8Larkspur10URLSessionCMn", true, []), ("got.$s20FoundationNetworking10URLSessionCMn", true, []),
      ("$s20FoundationNetworking10URLSessionCMnX", true, []), ("$s20FoundationNetworking10URLSessionCM", true, []),
      ("curl_easy_init", true, [.holdsCurl(file: nil)]), ("curl_easy_perform", true, [.holdsCurl(file: nil)]),
      ("curl_easy_init", false, []), ("curl_easy_initialize", true, []), ("curl_easy", true, []),
    ] as [(String, Bool, [Finding])])
  func symbols(name: String, isDefined: Bool, expected: [Finding]) throws {
    for isStripped in [false, true] {
      let image = ELFImage(
        libraries: ["libswiftCore.so"], symbols: [("main", true), (name, isDefined)], isStripped: isStripped,
        hasSwiftCode: true)
      #expect(try Self.findings(image) == expected)
    }
  }

  @Test(
    arguments: [
      // A file that links the Swift libraries dynamically, or has no Swift code, cannot contain the module.
      ([], true, true, true), (["libswiftCore.so"], true, true, false), ([], false, true, false),
      ([], true, false, false),
    ] as [([String], Bool, Bool, Bool)])
  func strippedFiles(libraries: [String], hasSwiftCode: Bool, isStripped: Bool, isUnknown: Bool) throws {
    let image = ELFImage(libraries: libraries, isStripped: isStripped, hasSwiftCode: hasSwiftCode)
    #expect(try Self.findings(image) == (isUnknown ? [.undetermined(file: nil)] : []))
  }

  /// A file without section headers is parsed.
  @Test func noSections() throws {
    var bytes = ELFImage(libraries: ["libcurl.so.4"]).bytes
    bytes.replaceSubrange(60..<62, with: [0, 0])
    #expect(try Self.findings(bytes) == [.links(library: "libcurl.so.4", file: nil), .undetermined(file: nil)])
  }

  @Test(
    arguments: [
      ([], .notELF), (Array("#!/bin/sh\n".utf8), .notELF), ([0x7f, 0x45, 0x4c], .notELF),
      ([0x7f, 0x45, 0x4c, 0x46], .damaged("header")),
      (patched(4, [1]), .unsupportedMachine), (patched(5, [2]), .unsupportedMachine), (patched(16, [1]), .notLinked),
      (patched(16, [4]), .notLinked),
      // A file without program headers, and a file without a segment to load.
      (patched(56, [0, 0]), .damaged("program headers")), (patched(64, [0]), .damaged("program headers")),
    ] as [([UInt8], ELFError)])
  func otherFiles(bytes: [UInt8], error: ELFError) {
    #expect(throws: error) { try Self.findings(bytes) }
  }

  private static let image = ELFImage(
    libraries: ["libc.so.6", "libcurl.so.4"], searchPaths: [(29, "/usr/lib:$ORIGIN")],
    symbols: [("main", true), ("curl_easy_init", true)], hasSwiftCode: true)

  private static func patched(_ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
    var image = image.bytes
    image.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    return image
  }

  /// Offsets and sizes outside the file, or that overflow, are errors.
  @Test(arguments: [.max, .max - 7, 1 << 63, 1 << 40, 0x1_0000] as [UInt64])
  func numbersOutOfRange(number: UInt64) {
    let layout = Self.image.layout
    let wide = ELFImage.integer(number, 8)
    let narrow = ELFImage.integer(min(number, 0xffff_ffff), 4)
    let symbolSection = layout.sectionHeaders.lowerBound + 4 * 64
    let dynamicSegment = ELFImage.programHeaders.lowerBound + 56
    let patches: [(Int, [UInt8])] = [
      (32, wide), (40, wide), (dynamicSegment + 8, wide), (dynamicSegment + 32, wide),
      // The offset of the first library's name, and the address of the string table.
      (layout.dynamic.lowerBound + 8, wide), (layout.dynamic.lowerBound + 3 * 16 + 8, wide),
      (symbolSection + 24, wide), (symbolSection + 32, wide), (symbolSection + 40, narrow), (symbolSection + 56, wide),
      (symbolSection - 64 + 24, wide), (symbolSection - 64 + 32, wide), (layout.symbols.lowerBound + 24, narrow),
      // The load address of the segment.
      (ELFImage.programHeaders.lowerBound + 16, ELFImage.integer(number | 1 << 39, 8)),
    ]
    for (offset, bytes) in patches {
      #expect(throws: ELFError.self, "\(offset)") { try Self.findings(Self.patched(offset, bytes)) }
    }
  }

  @Test func everyLength() throws {
    let bytes = Self.image.bytes
    #expect(try Self.findings(bytes) == [.links(library: "libcurl.so.4", file: nil), .holdsCurl(file: nil)])
    for count in bytes.indices {
      #expect(throws: ELFError.self) { try Self.findings(Array(bytes.prefix(count))) }
    }
  }

  /// A damaged byte leads to an error or another result, but never to a trap.
  @Test func everyByte() {
    let (bytes, layout) = Self.image.build()
    var results = 0
    for offset in Array(0..<ELFImage.programHeaders.upperBound) + Array(layout.dynamic) + Array(layout.symbols)
      + Array(layout.sectionHeaders)
    {
      for value in [0, 1, 0x7f, 0x80, 0xff, bytes[offset] ^ 1, bytes[offset] &+ 8] {
        var bytes = bytes
        bytes[offset] = value
        results += (try? Self.findings(bytes)) == nil ? 0 : 1
      }
    }
    #expect(results > 0)
  }

  /// Random bytes after a header, or inside a file, never lead to a trap.
  @Test func randomBytes() {
    var state: UInt64 = 0x9e37_79b9_7f4a_7c15
    func random(below bound: Int) -> Int {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return Int(state % UInt64(bound))
    }
    let image = Self.image.bytes
    for round in 0..<1000 {
      var bytes = image
      if round % 2 == 0 {
        for offset in random(below: image.count)..<image.count { bytes[offset] = UInt8(random(below: 256)) }
      } else {
        for _ in 0...random(below: 8) { bytes[random(below: image.count)] = UInt8(random(below: 256)) }
      }
      _ = try? Self.findings(bytes)
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
