/// A program or a shared library in the ELF format, 64 bits and little-endian.
///
/// The file is not trusted: whatever its bytes are, reading ends with a result or an `ELFError`, and the time and
/// memory for it are at most proportional to the file's size.
struct ELFFile {
  /// A part of the file that is loaded into memory or describes how to load the file.
  struct Segment {
    var type: UInt64
    var offset: UInt64
    var address: UInt64
    var size: UInt64
  }

  struct Section {
    /// The offset of the name in the table of section names.
    var name: UInt64
    var type: UInt64
    var offset: UInt64
    var size: UInt64
    /// The index of the section with the names of this section's symbols.
    var link: UInt64
    var rowSize: UInt64
  }

  let bytes: ProgramBytes
  let segments: [Segment]
  /// The sections. Empty if the file has no section headers, which a program does not need.
  let sections: [Section]
  private let sectionNames: Int

  init(_ bytes: ProgramBytes) throws(ELFError) {
    self.bytes = bytes
    let identification = try bytes.bytes(at: 0, count: min(bytes.count, 16), of: "header")
    guard identification.starts(by: [0x7f, UInt8(ascii: "E"), UInt8(ascii: "L"), UInt8(ascii: "F")]) else {
      throw .notELF
    }
    let header = ELFFields(try bytes.bytes(at: 0, count: 64, of: "header"), rowSize: 64)
    // The class (2 is 64 bits) and the byte order (1 is little-endian).
    guard header.uint16(4) == 0x0102 else { throw .unsupportedMachine }
    // 2 is a program at a fixed address; 3 is any other program, or a shared library.
    guard [2, 3].contains(header.uint16(16)) else { throw .notLinked }
    segments = try Self.segments(header, bytes)
    guard segments.contains(where: { $0.type == 1 }) else { throw .damaged("program headers") }
    sections = try Self.sections(header, bytes)
    sectionNames = Int(header.uint16(62))
  }

  private static func segments(_ header: ELFFields, _ bytes: ProgramBytes) throws(ELFError) -> [Segment] {
    let count = header.uint16(56)
    guard header.uint16(54) == 56 else { throw .damaged("program headers") }
    let table = ELFFields(
      try bytes.bytes(at: header.uint64(32), count: count * 56, of: "program headers"), rowSize: 56)
    return table.rows.map { row in
      Segment(
        type: table.uint32(0, row: row), offset: table.uint64(8, row: row), address: table.uint64(16, row: row),
        size: table.uint64(32, row: row))
    }
  }

  private static func sections(_ header: ELFFields, _ bytes: ProgramBytes) throws(ELFError) -> [Section] {
    let (offset, count) = (header.uint64(40), header.uint16(60))
    guard offset > 0, count > 0 else { return [] }
    guard header.uint16(58) == 64 else { throw .damaged("section headers") }
    let table = ELFFields(try bytes.bytes(at: offset, count: count * 64, of: "section headers"), rowSize: 64)
    return table.rows.map { row in
      Section(
        name: table.uint32(0, row: row), type: table.uint32(4, row: row), offset: table.uint64(24, row: row),
        size: table.uint64(32, row: row), link: table.uint32(40, row: row), rowSize: table.uint64(56, row: row))
    }
  }

  /// Whether the file may contain Swift code. Swift's metadata has sections of its own, which stay in a stripped file.
  ///
  /// - Returns: `true` as well if the file has no section headers, which leaves the question open.
  func mayHaveSwiftCode() throws(ELFError) -> Bool {
    guard !sections.isEmpty else { return true }
    guard sections.indices.contains(sectionNames) else { throw .damaged("section names") }
    let section = sections[sectionNames]
    let names = NameTable(try bytes.bytes(at: section.offset, count: section.size, of: "section names"))
    return sections.contains { names.name(at: $0.name, begins: Self.swiftSection) }
  }

  private static let swiftSection = Array("swift5_".utf8)
}

extension Array<UInt8> {
  /// Whether the array begins with these bytes.
  func starts(by bytes: [UInt8]) -> Bool { count >= bytes.count && self[..<bytes.count].elementsEqual(bytes) }
}
