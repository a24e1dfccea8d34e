import LarkspurHTTP

/// Names one variant of what is stored under a key. The name of its file is made of hashes alone: no character of a
/// URL ever becomes one of a path.
struct CacheEntryName: Hashable, Sendable {
  var key: CacheHash
  var variant: CacheHash

  init(key: CacheHash, variant: CacheHash) {
    self.key = key
    self.variant = variant
  }

  var fileName: String { "\(key.hexadecimal)-\(variant.hexadecimal)\(Self.suffix)" }

  /// Nil: the file is none of a cache's.
  init?(fileName: String) {
    guard fileName.hasSuffix(Self.suffix) else { return nil }
    let parts = fileName.dropLast(Self.suffix.count).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let key = CacheHash(hexadecimal: parts[0]),
      let variant = CacheHash(hexadecimal: parts[1])
    else { return nil }
    self.init(key: key, variant: variant)
  }

  private static let suffix = ".entry"

  /// For a file that is being written. Whoever finds one that is old knows that its writer was killed.
  static func temporary(_ number: UInt64, process: Int32) -> String { "\(process)-\(number)\(temporarySuffix)" }

  static let temporarySuffix = ".part"
}
