import LarkspurHTTP

/// The name of one stored variant of a key. File names contain hashes only, so no character of a URL becomes part of a
/// path.
struct CacheEntryName: Hashable, Sendable {
  var key: CacheHash
  var variant: CacheHash

  init(key: CacheHash, variant: CacheHash) {
    self.key = key
    self.variant = variant
  }

  /// The name of the file with the head and the body.
  var fileName: String { "\(key.hexadecimal)-\(variant.hexadecimal)\(Self.suffix)" }

  /// The name of the file with the later head, if there is one.
  var headFileName: String { "\(key.hexadecimal)-\(variant.hexadecimal)\(Self.headSuffix)" }

  /// Parses the name of an entry's file. Returns `nil` for other names.
  init?(fileName: String) { self.init(fileName, suffix: Self.suffix) }

  /// Parses the name of a head's file. Returns `nil` for other names.
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

  /// Returns the name of a temporary file. A temporary file that is old belongs to a writer that was killed.
  static func temporary(_ number: UInt64, process: Int32) -> String { "\(process)-\(number)\(temporarySuffix)" }

  static let temporarySuffix = ".part"
}
