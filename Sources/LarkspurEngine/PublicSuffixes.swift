import LarkspurHTTP
import LarkspurIO

/// The system's public suffix list, as in Debian's package `publicsuffix`; other distributions have it too.
///
/// The list is read once in a process, when it is first needed. If there is none, every name of one label is a public
/// suffix, and no other name is.
package enum PublicSuffixes {
  static let paths = [
    "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
  ]

  /// Maximum number of bytes that are read. The list has about 0.3 MB; an endless file would fill the memory.
  static let bytesMax = 16 << 20

  package static let system = table(from: paths)

  package static func table(from paths: [String]) -> PublicSuffixTable {
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
