import LarkspurBytes
import LarkspurEngine
import Testing

@Suite struct DownloadChecksumTests {
  // The examples of RFC 1321 A.5 and FIPS 180-4 for "abc".
  private static let md5 = "900150983cd24fb0d6963f7d28e17f72"
  private static let sha1 = "a9993e364706816aba3e25717850c26c9cd0d89d"
  private static let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  private static let sha512 =
    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"

  @Test(arguments: [("md5", md5), ("sha1", sha1), ("sha256", sha256), ("sha512", sha512)])
  func texts(algorithm: String, digits: String) throws {
    let checksum = try DownloadChecksum("\(algorithm):\(digits)")
    #expect(checksum.algorithm.rawValue == algorithm)
    #expect(checksum.bytes.count == checksum.algorithm.byteCount && checksum.bytes.count * 2 == digits.utf8.count)
    #expect("\(checksum)" == "\(algorithm):\(digits)")
    #expect(try DownloadChecksum("\(algorithm.uppercased()):\(digits.uppercased())") == checksum)
    #expect(try DownloadChecksum(checksum.algorithm, checksum.bytes) == checksum)
  }

  @Test(arguments: [
    ("", "form"), (sha256, "form"), ("sha256", "form"), ("crc32:01020304", "crc32"), (":00", "algorithms"),
    ("sha256:", "32 bytes, and not 0"), ("sha256:\(sha1)", "32 bytes, and not 20"), ("sha256:\(sha256)0", "pairs"),
    ("sha256:\(sha256)00", "not 33"), ("sha256:\(sha256.dropLast())g", "pairs"), ("sha256: \(sha256)", "pairs"),
    ("sha256:\(sha256) ", "pairs"), ("sha256::\(sha256)", "pairs"),
  ])
  func wrongTextsAreNamed(text: String, part: String) {
    do throws(DownloadChecksum.Invalid) {
      _ = try DownloadChecksum(text)
      Issue.record("accepted: \(text)")
    } catch {
      #expect(error.description.contains(part), "\(error)")
    }
  }

  @Test func hashesOfPieces() throws {
    let hash = [UInt8](repeating: 1, count: 32)
    let three = try DownloadPieceHashes(.sha256, pieceBytes: 10, hashes: [hash, hash, hash])
    for (total, isCovered) in [(0, false), (20, false), (21, true), (30, true), (31, false), (Int.max, false)] {
      #expect(three.cover(total) == isCovered, "\(total)")
    }
    #expect(try DownloadPieceHashes(.sha256, pieceBytes: 10, hashes: []).cover(0))
    #expect(try DownloadPieceHashes(.sha256, pieceBytes: .max, hashes: [hash]).cover(.max))
    for (pieceBytes, hashes, part) in [(0, [hash], "1 byte"), (-1, [hash], "1 byte"), (1, [hash, [1]], "piece 1")] {
      do throws(DownloadChecksum.Invalid) {
        _ = try DownloadPieceHashes(.sha256, pieceBytes: pieceBytes, hashes: hashes)
        Issue.record("accepted: \(pieceBytes), \(hashes)")
      } catch {
        #expect(error.description.contains(part), "\(error)")
      }
    }
  }

  // MARK: - Fields of RFC 9530

  private static func member(_ key: String, _ text: String) throws -> String {
    "\(key)=:\(Base64.encode(try DownloadChecksum(text).bytes)):"
  }

  @Test func theStrongestDigestCounts() throws {
    let weak = try Self.member("sha-256", "sha256:\(Self.sha256)")
    let strong = try Self.member("sha-512", "sha512:\(Self.sha512)")
    #expect(DownloadChecksum(digestField: [weak])?.algorithm == .sha256)
    #expect(DownloadChecksum(digestField: [weak])?.description == "sha256:\(Self.sha256)")
    #expect(DownloadChecksum(digestField: ["\(weak), \(strong)"])?.description == "sha512:\(Self.sha512)")
    #expect(DownloadChecksum(digestField: [strong, weak])?.algorithm == .sha512)
    #expect(DownloadChecksum(digestField: ["unixsum=:AA==:, \(weak);a=1"])?.algorithm == .sha256)
  }

  @Test func otherFieldsAreAbsent() throws {
    let weak = try Self.member("sha-256", "sha256:\(Self.sha256)")
    let short = "sha-512=:AAAA:"
    for lines in [
      [], [""], ["sha-256"], ["sha-256=AAAA"], ["sha-256=\"AAAA\""], ["sha-256=:AAAA:"], ["md5=:AAAA:"],
      ["SHA-256=:\(Self.sha256):"], ["\(weak),"], ["\(weak) x"], [weak, "="], ["\(weak), \(short)"],
    ] {
      #expect(DownloadChecksum(digestField: lines) == nil, "\(lines)")
    }
  }

  @Test func contentIsComparedWhileItArrives() throws {
    let field = [try Self.member("sha-256", "sha256:\(Self.sha256)")]
    for (pieces, isMatched) in [(["abc"], true), (["a", "", "bc"], true), (["ab"], false), (["abc", "d"], false)] {
      let digest = try #require(DownloadDigest(contentDigest: field))
      for piece in pieces { digest.update(Array(piece.utf8).span) }
      #expect(digest.isMatched() == isMatched, "\(pieces)")
    }
    #expect(DownloadDigest(contentDigest: []) == nil)
  }
}
