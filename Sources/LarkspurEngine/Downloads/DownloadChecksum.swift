import LarkspurHTTP
import LarkspurTLS

/// The hash that a file has to have.
///
/// The text of a checksum is its algorithm and its bytes as hexadecimal digits, for example `sha256:ba7816bf…`.
public struct DownloadChecksum: Hashable, Sendable, CustomStringConvertible {
  /// A hash function.
  public enum Algorithm: String, Hashable, Sendable, CaseIterable {
    /// MD5 (RFC 1321). Detects errors, but no attacker.
    case md5
    /// SHA-1 (FIPS 180-4). Detects errors, but no attacker.
    case sha1
    /// SHA-256 (FIPS 180-4).
    case sha256
    /// SHA-512 (FIPS 180-4).
    case sha512

    /// The size of a hash in bytes.
    public var byteCount: Int {
      switch self {
      case .md5: 16
      case .sha1: 20
      case .sha256: 32
      case .sha512: 64
      }
    }

    var function: MessageDigest.Algorithm {
      switch self {
      case .md5: .md5
      case .sha1: .sha1
      case .sha256: .sha256
      case .sha512: .sha512
      }
    }
  }

  /// The reason for which a checksum or the hashes of pieces cannot be used.
  public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason in plain words, with the part that is wrong.
    public let description: String
  }

  /// The hash function.
  public let algorithm: Algorithm
  /// The hash.
  public let bytes: [UInt8]

  /// Creates a checksum from the bytes of a hash.
  ///
  /// - Throws: An error that names the size, if it is not that of the algorithm, or the algorithm, if OpenSSL's policy
  ///   forbids it.
  public init(_ algorithm: Algorithm, _ bytes: [UInt8]) throws(Invalid) {
    guard bytes.count == algorithm.byteCount else {
      throw Invalid(
        description: "a hash of \(algorithm.rawValue) has \(algorithm.byteCount) bytes, and not \(bytes.count)")
    }
    guard MessageDigest(algorithm.function) != nil else {
      throw Invalid(description: "OpenSSL does not provide \(algorithm.rawValue)")
    }
    (self.algorithm, self.bytes) = (algorithm, bytes)
  }

  /// Reads the text of a checksum, for example `sha256:ba7816bf…`. Upper and lower case do not differ.
  ///
  /// - Throws: An error that names what is wrong: the algorithm, a digit, or the size.
  public init(_ text: String) throws(Invalid) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw Invalid(description: "a checksum has the form sha256:DIGITS") }
    guard let algorithm = Algorithm(rawValue: parts[0].lowercased()) else {
      let known = Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
      throw Invalid(description: "\(parts[0].debugDescription) is none of the algorithms \(known)")
    }
    var bytes: [UInt8] = []
    var digits = parts[1].utf8[...]
    while let high = digits.popFirst() {
      guard let first = Self.value(ofDigit: high), let second = digits.popFirst().flatMap(Self.value(ofDigit:)) else {
        throw Invalid(description: "\(parts[1].debugDescription) is no sequence of pairs of hexadecimal digits")
      }
      bytes.append(first << 4 | second)
    }
    try self.init(algorithm, bytes)
  }

  /// The text of the checksum, which `init(_:)` reads.
  public var description: String {
    let digits = Array("0123456789abcdef".utf8)
    let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return "\(algorithm.rawValue):\(String(decoding: text, as: UTF8.self))"
  }

  private static func value(ofDigit byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

extension DownloadChecksum {
  /// Whether no bytes have both checksums.
  func contradicts(_ other: DownloadChecksum) -> Bool { algorithm == other.algorithm && bytes != other.bytes }

  /// Reads a field `Repr-Digest` or `Content-Digest` (RFC 9530, sections 2 and 3). The strongest of the algorithms SHA-512 and
  /// SHA-256 counts; the other registered ones are deprecated (section 5).
  ///
  /// - Parameter lines: The values of all field lines of the name, in order.
  /// - Returns: `nil` for a field that is absent, is malformed, or has neither algorithm.
  package init?(digestField lines: [String]) {
    guard let members = StructuredFieldParser.dictionary(lines) else { return nil }
    for (key, algorithm) in [("sha-512", Algorithm.sha512), ("sha-256", .sha256)] {
      guard let member = members[key] else { continue }
      guard case .byteSequence(let bytes) = member, let checksum = try? Self(algorithm, bytes) else { return nil }
      self = checksum
      return
    }
    return nil
  }
}

/// The hashes of a file's pieces, all of one size but the last, which may be shorter.
///
/// A piece that does not have its hash is fetched once more, alone.
public struct DownloadPieceHashes: Hashable, Sendable {
  /// The hash function.
  public let algorithm: DownloadChecksum.Algorithm
  /// The size of a piece in bytes.
  public let pieceBytes: Int
  /// The hashes of the pieces, in order.
  public let hashes: [[UInt8]]

  /// Creates the hashes of pieces.
  ///
  /// - Throws: An error that names the size of the pieces, if it is less than 1, or the first hash that has not the size of
  ///   the algorithm's.
  public init(
    _ algorithm: DownloadChecksum.Algorithm, pieceBytes: Int, hashes: [[UInt8]]
  ) throws(DownloadChecksum.Invalid) {
    guard pieceBytes >= 1 else {
      throw DownloadChecksum.Invalid(description: "a piece has at least 1 byte, and not \(pieceBytes)")
    }
    for (index, hash) in hashes.enumerated() {
      do throws(DownloadChecksum.Invalid) {
        _ = try DownloadChecksum(algorithm, hash)
      } catch {
        throw DownloadChecksum.Invalid(description: "the piece \(index): \(error)")
      }
    }
    (self.algorithm, self.pieceBytes, self.hashes) = (algorithm, pieceBytes, hashes)
  }

  /// Whether the hashes are those of all pieces of a file of this size.
  package func cover(_ total: Int) -> Bool {
    total == 0 ? hashes.isEmpty : (total - 1) / pieceBytes == hashes.count - 1
  }
}
