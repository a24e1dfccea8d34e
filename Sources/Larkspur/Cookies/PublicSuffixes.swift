import Foundation
import LarkspurHTTP
import LarkspurIO

/// The public suffix list of the system: Debian's package `publicsuffix`, which others have as well.
///
/// It is read once in a process, when somebody first asks about two different names. Where there is none, every name of
/// a single label is a public suffix, and no other.
enum PublicSuffixes {
  static let paths = [
    "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
  ]

  /// The list has a third of a megabyte. One without end would otherwise be read into memory.
  static let bytesMax = 16 << 20

  static let system = table(from: paths)

  static func table(from paths: [String]) -> PublicSuffixTable {
    for path in paths {
      guard let file = try? OpenFile(readingRegular: path), let bytes = try? read(file) else { continue }
      let table = PublicSuffixTable(list: bytes)
      if !table.isEmpty { return table }
    }
    return PublicSuffixTable()
  }

  private static func read(_ file: OpenFile) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count <= bytesMax {
      let piece = try file.read(atMost: 1 << 20)
      if piece.isEmpty { return bytes }
      bytes += piece
    }
    throw Errno.fileTooLarge
  }
}
