extension ELFFile {
  /// The instructions to the dynamic linker.
  struct DynamicSection {
    /// The names of the shared libraries that the file needs.
    var libraries: [String] = []
    /// The directories in which the libraries are searched, separated by colons: `DT_RUNPATH`, or `DT_RPATH`
    /// without it.
    var searchPath = ""
  }

  /// The maximum number of entries to read. A program of 500 libraries has fewer than 1,000.
  private static let entriesMax: UInt64 = 65_536
  private static let librariesMax = 1024
  /// The maximum length of a name, in bytes.
  private static let nameMax: UInt64 = 4096
  /// The maximum length of the list of directories, in bytes.
  private static let searchPathMax: UInt64 = 65_536

  /// - Returns: The section, which is empty for a statically linked program.
  func dynamicSection() throws(ELFError) -> DynamicSection {
    var section = DynamicSection()
    guard let segment = segments.first(where: { $0.type == 2 }) else { return section }
    guard segment.size <= Self.entriesMax * 16 else { throw .damaged("dynamic section") }
    let entries = ELFFields(
      try bytes.bytes(at: segment.offset, count: segment.size, of: "dynamic section"), rowSize: 16)
    var (needed, runPath, oldPath): ([UInt64], UInt64?, UInt64?) = ([], nil, nil)
    var (address, size): (UInt64?, UInt64) = (nil, 0)
    loop: for row in entries.rows {
      let value = entries.uint64(8, row: row)
      switch entries.uint64(0, row: row) {
      case 0: break loop
      case 1: needed.append(value)
      case 5: address = value
      case 10: size = value
      case 15: oldPath = value
      case 29: runPath = value
      default: break
      }
    }
    guard needed.count <= Self.librariesMax else { throw .damaged("needed libraries") }
    let searchPath = runPath ?? oldPath
    guard !needed.isEmpty || searchPath != nil else { return section }
    guard let address, let names = location(of: address, size: size) else { throw .damaged("dynamic names") }
    for offset in needed { section.libraries.append(try name(at: offset, in: names, max: Self.nameMax)) }
    if let searchPath { section.searchPath = try name(at: searchPath, in: names, max: Self.searchPathMax) }
    return section
  }

  /// Finds the bytes at an address of the program in the file.
  ///
  /// - Returns: Their offset and size, limited to the part that is loaded from the file, or `nil` if the file loads
  ///   nothing to the address.
  private func location(of address: UInt64, size: UInt64) -> (offset: UInt64, size: UInt64)? {
    for segment in segments
    where segment.type == 1 && address >= segment.address && address - segment.address < segment.size {
      let distance = address - segment.address
      let (offset, overflows) = segment.offset.addingReportingOverflow(distance)
      return overflows ? nil : (offset, min(size, segment.size - distance))
    }
    return nil
  }

  private func name(
    at offset: UInt64, in names: (offset: UInt64, size: UInt64), max: UInt64
  ) throws(ELFError) -> String {
    let (start, overflows) = names.offset.addingReportingOverflow(offset)
    guard !overflows, offset < names.size, start < bytes.count else { throw .damaged("dynamic names") }
    let count = min(max, names.size - offset, bytes.count - start)
    let name = try bytes.bytes(at: start, count: count, of: "dynamic names")
    guard let end = name.firstIndex(of: 0) else { throw .damaged("dynamic names") }
    return String(decoding: name[..<end], as: UTF8.self)
  }
}
