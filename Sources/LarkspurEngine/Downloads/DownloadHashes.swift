import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The hashes that a file is compared with before it gets its name.
package struct DownloadHashes: Hashable, Sendable {
  package var checksum: DownloadChecksum?
  package var pieces: DownloadPieceHashes?

  package init(checksum: DownloadChecksum? = nil, pieces: DownloadPieceHashes? = nil) {
    (self.checksum, self.pieces) = (checksum, pieces)
  }

  package var isEmpty: Bool { checksum == nil && pieces == nil }

  /// Compares a file with the hashes. Reads the file to its end on the calling thread.
  ///
  /// - Parameters:
  ///   - total: Size of the file in bytes.
  ///   - isWanted: Called from time to time. The comparison fails with `interrupted` when it returns `false`.
  func verification(
    of file: some DownloadPart, _ total: Int, isWanted: () -> Bool = { true }
  ) -> DownloadMachine.Verification {
    do throws(Errno) {
      if let pieces {
        guard pieces.cover(total) else { return .wrong([]) }
        var wrong: [Range<Int>] = []
        for (index, hash) in pieces.hashes.enumerated() {
          let first = index * pieces.pieceBytes
          let piece = first..<first + min(pieces.pieceBytes, total - first)
          if try Self.hash(file, piece, pieces.algorithm, isWanted) != hash { wrong.append(piece) }
        }
        guard wrong.isEmpty else { return .wrong(wrong) }
      }
      guard let checksum else { return .fits }
      return try Self.hash(file, 0..<total, checksum.algorithm, isWanted) == checksum.bytes ? .fits : .wrong([])
    } catch {
      return .failed(DownloadMachine.DiskError(error))
    }
  }

  /// Number of bytes that are read at once.
  private static let readBytes = 1 << 18

  private static func hash(
    _ file: some DownloadPart, _ range: Range<Int>, _ algorithm: DownloadChecksum.Algorithm,
    _ isWanted: () -> Bool
  ) throws(Errno) -> [UInt8] {
    guard var digest = MessageDigest(algorithm.function) else { throw .notSupported }
    var position = range.lowerBound
    while position < range.upperBound {
      guard isWanted() else { throw .interrupted }
      let bytes = try file.read(at: position, atMost: min(readBytes, range.upperBound - position))
      guard !bytes.isEmpty else { throw .inputOutput }
      digest.update(bytes.span)
      position += bytes.count
    }
    guard let hash = digest.finish() else { throw .notSupported }
    return hash
  }
}

extension DownloadMachine.DiskError {
  package init(_ error: Errno) { self = error.isFull ? .full : .failed(error.rawValue) }
}

/// Compares the content of a response with its field `Content-Digest` (RFC 9530, section 2) while it arrives. Use it on one
/// thread at a time.
package final class DownloadDigest {
  private let expected: DownloadChecksum
  private var digest: MessageDigest?

  /// - Parameter lines: The values of all field lines, in order.
  /// - Returns: `nil` for a response without a digest that can be checked.
  package init?(contentDigest lines: [String]) {
    guard let expected = DownloadChecksum(digestField: lines) else { return nil }
    self.expected = expected
    digest = MessageDigest(expected.algorithm.function)
  }

  package func update(_ bytes: Span<UInt8>) { digest?.update(bytes) }

  /// Returns whether the content, which is at its end, has the digest. Called once.
  package func isMatched() -> Bool { digest.take()?.finish() == expected.bytes }
}
