/// The names that are in use, with the directories above them, as a tree: each name is stored once, and time and memory
/// are in proportion to the bytes of the names.
struct NameTable: Sendable {
  private enum Name: Hashable, Sendable {
    /// Equal for names that are equal without regard to case and to Unicode normalization, because strings that are
    /// canonically equivalent are equal.
    case folded(String)
    case exact([UInt8])
  }

  private struct Key: Hashable, Sendable {
    /// The number of the directory. 0 is the destination.
    var parent: Int
    var name: Name
  }

  private struct Use: Sendable {
    /// Different for each use, from 1.
    var number: Int
    var name: String
    var isDirectory: Bool
  }

  private let permitsSimilarNames: Bool
  /// A name of a few hundred bytes can need a hundred directories.
  private let countMax: Int
  private var uses: [Key: Use] = [:]
  /// The directories on the way to the latest entry.
  private var chain: [(name: String, number: Int)] = []

  init(_ limits: SSZipArchiveLimits) {
    (permitsSimilarNames, countMax) = (limits.permitsSimilarNames, limits.entryCountMax)
  }

  /// Adds the name of an entry.
  ///
  /// - Throws: `conflictingNames`, `tooManyEntries`.
  mutating func add(_ entry: ArchivePlan.Entry) throws(ArchiveRefusal) {
    guard let last = entry.path.last else { return }
    let parents = entry.path.dropLast()
    let common = zip(chain, parents).prefix { $0.name.utf8.elementsEqual($1.utf8) }.count
    chain.removeSubrange(common...)
    for part in parents.dropFirst(common) { chain.append((part, try use(part, isDirectory: true, named: entry.name))) }
    _ = try use(last, isDirectory: entry.kind == .directory, named: entry.name)
  }

  /// - Parameter part: A name in the last directory of `chain`.
  /// - Returns: The number of the use.
  private mutating func use(_ part: String, isDirectory: Bool, named name: String) throws(ArchiveRefusal) -> Int {
    // Upper case first: the upper case of `ß` is `SS`.
    let found: Name = permitsSimilarNames ? .exact(Array(part.utf8)) : .folded(part.uppercased().lowercased())
    let key = Key(parent: chain.last?.number ?? 0, name: found)
    guard let use = uses[key] else {
      if uses.count >= countMax { throw ArchiveRefusal(.tooManyEntries) }
      let number = uses.count + 1
      uses[key] = Use(number: number, name: part, isDirectory: isDirectory)
      return number
    }
    guard use.isDirectory, isDirectory, use.name.utf8.elementsEqual(part.utf8) else {
      throw ArchiveRefusal(.conflictingNames, name)
    }
    return use.number
  }
}
