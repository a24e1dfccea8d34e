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

  /// The name of the file with the head and the body.
  var fileName: String { "\(key.hexadecimal)-\(variant.hexadecimal)\(Self.suffix)" }

  /// The name of the file that has a later head, if there is one.
  var headFileName: String { "\(key.hexadecimal)-\(variant.hexadecimal)\(Self.headSuffix)" }

  /// Returns `nil` if the file is not an entry.
  init?(fileName: String) { self.init(fileName, suffix: Self.suffix) }

  /// Returns `nil` if the file is not a head.
  init?(headFileName: String) { self.init(headFileName, suffix: Self.headSuffix) }

  private init?(_ fileName: String, suffix: String) {
    guard fileName.hasSuffix(suffix) else { return nil }
    let parts = fileName.dropLast(suffix.count).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let key = CacheHash(hexadecimal: parts[0]),
      let variant = CacheHash(hexadecimal: parts[1])
    else { return nil }
    self.init(key: key, variant: variant)
  }

  private static let suffix = ".entry"
  private static let headSuffix = ".head"

  /// For a file that is being written. Whoever finds one that is old knows that its writer was killed.
  static func temporary(_ number: UInt64, process: Int32) -> String { "\(process)-\(number)\(temporarySuffix)" }

  static let temporarySuffix = ".part"
}
