/// A small ELF file with the parts that `larkspur check` reads.
struct ELFImage {
  var libraries: [String] = []
  /// The search paths with their tags: `DT_RUNPATH` (29) or `DT_RPATH` (15).
  var searchPaths: [(tag: UInt64, path: String)] = []
  var symbols: [(name: String, isDefined: Bool)] = []
  var isStripped = false
  var hasSwiftCode = false

  /// The ranges of the parts, for tests that damage them.
  struct Layout {
    var dynamic = 0..<0
    var symbols = 0..<0
    var sectionHeaders = 0..<0
  }

  static let programHeaders = 64..<64 + 2 * 56
  /// The load address of the file. Its tables are found by their addresses.
  private static let base: UInt64 = 0x40_0000

  var bytes: [UInt8] { build().bytes }
  var layout: Layout { build().layout }

  func build() -> (bytes: [UInt8], layout: Layout) {
    var layout = Layout()
    var body = [UInt8](repeating: 0, count: Self.programHeaders.upperBound)
    let dynamicNames = Names(libraries + searchPaths.map(\.path))
    let nameTable = append(dynamicNames.bytes, to: &body)
    var entries: [UInt64] = []
    for library in libraries { entries += [1, dynamicNames.offset(of: library)] }
    for (tag, path) in searchPaths { entries += [tag, dynamicNames.offset(of: path)] }
    entries += [5, Self.base + UInt64(nameTable.lowerBound), 10, UInt64(nameTable.count), 0, 0]
    layout.dynamic = append(entries.flatMap { Self.integer($0, 8) }, to: &body)

    let symbolNames = Names(symbols.map(\.name))
    let symbolNameTable = append(symbolNames.bytes, to: &body)
    var rows = [UInt8](repeating: 0, count: 24)
    for symbol in symbols {
      rows += Self.integer(symbolNames.offset(of: symbol.name), 4) + [0x12, 0]
      rows += Self.integer(symbol.isDefined ? 1 : 0, 2) + [UInt8](repeating: 0, count: 16)
    }
    layout.symbols = append(rows, to: &body)

    let sectionName = hasSwiftCode ? "swift5_reflstr" : ".text"
    let sectionNames = Names([sectionName])
    let sectionNameTable = append(sectionNames.bytes, to: &body)
    // The first section is empty by definition.
    var headers = Self.section(type: 0, 0..<0)
    headers += Self.section(name: sectionNames.offset(of: sectionName), type: 1, 0..<0)
    headers += Self.section(type: 3, sectionNameTable)
    headers += Self.section(type: 3, symbolNameTable)
    headers += Self.section(type: isStripped ? 11 : 2, layout.symbols, link: 3, rowSize: 24)
    layout.sectionHeaders = append(headers, to: &body)

    var head: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1] + [UInt8](repeating: 0, count: 9)
    head += Self.integer(3, 2) + Self.integer(62, 2) + Self.integer(1, 4) + Self.integer(0, 8)
    head += Self.integer(64, 8) + Self.integer(UInt64(layout.sectionHeaders.lowerBound), 8) + Self.integer(0, 4)
    for number: UInt64 in [64, 56, 2, 64, 5, 2] { head += Self.integer(number, 2) }
    head += Self.segment(type: 1, 0..<body.count)
    head += Self.segment(type: 2, layout.dynamic)
    return (head + body.dropFirst(head.count), layout)
  }

  /// A string table: an empty name, and then the names, each followed by a zero byte.
  private struct Names {
    var bytes: [UInt8] = [0]
    private var offsets: [String: UInt64] = [:]

    init(_ names: [String]) {
      for name in names {
        offsets[name] = UInt64(bytes.count)
        bytes += Array(name.utf8) + [0]
      }
    }

    func offset(of name: String) -> UInt64 { offsets[name, default: 0] }
  }

  /// Appends a part at the next multiple of eight bytes.
  private func append(_ part: [UInt8], to body: inout [UInt8]) -> Range<Int> {
    body += [UInt8](repeating: 0, count: -body.count & 7)
    body += part
    return body.count - part.count..<body.count
  }

  private static func segment(type: UInt64, _ range: Range<Int>) -> [UInt8] {
    let (offset, size) = (UInt64(range.lowerBound), UInt64(range.count))
    return integer(type, 4) + integer(4, 4)
      + [offset, base + offset, base + offset, size, size, 8].flatMap { integer($0, 8) }
  }

  private static func section(
    name: UInt64 = 0, type: UInt64, _ range: Range<Int>, link: UInt64 = 0, rowSize: UInt64 = 0
  ) -> [UInt8] {
    integer(name, 4) + integer(type, 4)
      + [0, 0, UInt64(range.lowerBound), UInt64(range.count)].flatMap { integer($0, 8) }
      + integer(link, 4) + integer(0, 4) + integer(1, 8) + integer(rowSize, 8)
  }

  static func integer(_ number: UInt64, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
  }
}
