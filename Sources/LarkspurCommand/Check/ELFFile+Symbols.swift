extension ELFFile {
  /// The facts that symbol tables show of statically linked code.
  struct Symbols {
    /// Whether the file has no full table: a stripped file only has names for the dynamic linker.
    var isStripped = true
    var definesNetworking = false
    var definesCurl = false
  }

  private static let rowSize: UInt64 = 24
  /// The size of the part of a table that is in memory at once, in bytes: a multiple of the row's size.
  private static let pieceMax: UInt64 = rowSize * 65_536

  /// Reads the full table and the dynamic linker's. A file has at most one of each; others are not read.
  func symbols() throws(ELFError) -> Symbols {
    var symbols = Symbols()
    for type: UInt64 in [2, 11] {
      guard let table = sections.first(where: { $0.type == type }) else { continue }
      if type == 2 { symbols.isStripped = false }
      guard table.rowSize == Self.rowSize, table.size <= ProgramBytes.partMax else { throw .damaged("symbols") }
      guard let link = Int(exactly: table.link), sections.indices.contains(link) else { throw .damaged("symbols") }
      let names = NameTable(
        try bytes.bytes(at: sections[link].offset, count: sections[link].size, of: "symbol names"))
      try read(table, names, into: &symbols)
    }
    return symbols
  }

  private func read(_ table: Section, _ names: NameTable, into symbols: inout Symbols) throws(ELFError) {
    var position: UInt64 = 0
    while position < table.size {
      let count = min(table.size - position, Self.pieceMax)
      let (offset, overflows) = table.offset.addingReportingOverflow(position)
      guard !overflows else { throw .damaged("symbols") }
      let rows = ELFFields(
        try bytes.bytes(at: offset, count: count, of: "symbols"), rowSize: Int(Self.rowSize))
      for row in rows.rows {
        let name = rows.uint32(0, row: row)
        guard name < names.count else { throw .damaged("symbol names") }
        // Section 0 means that the symbol is defined in another file.
        guard rows.uint16(6, row: row) != 0 else { continue }
        if names.name(at: name, begins: ForeignSymbols.networkingPrefix) {
          if ForeignSymbols.networking.contains(where: { names.name(at: name, begins: $0) }) {
            symbols.definesNetworking = true
          }
        } else if ForeignSymbols.curl.contains(where: { names.name(at: name, begins: $0) }) {
          symbols.definesCurl = true
        }
      }
      position += count
    }
  }
}
