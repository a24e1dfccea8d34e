import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS
import Testing

@testable import Larkspur

@Suite struct MessageHashTests {
  /// Hashes "abc" and compares the result with the examples of RFC 1321 A.5 and FIPS 180-4.
  @Test(arguments: [
    (DigestHash.md5, "900150983cd24fb0d6963f7d28e17f72"),
    (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (.sha512_256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
  ])
  func examples(hash: DigestHash, digest: String) {
    #expect(messageHash(hash, Array("abc".utf8)) == DigestResponseTests.bytes(digest))
  }

  @Test(arguments: MessageDigest.Algorithm.allCases) func pieces(algorithm: MessageDigest.Algorithm) {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 * 7) }
    guard var digest = MessageDigest(algorithm) else { return #expect(Bool(false)) }
    for piece in [bytes[..<1], bytes[1..<1], bytes[1..<900], bytes[900...]] { digest.update(Array(piece).span) }
    let pieces = digest.finish()
    #expect(pieces != nil && pieces == MessageDigest.of(bytes, algorithm))
  }

  @Test func files() throws {
    let directory = try AuthenticationDirectory()
    let data = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0) })
    try data.write(to: URL(fileURLWithPath: directory.file("body")))
    #expect(BodyHashing.ofFile(at: directory.file("body"))(.sha256) == BodyHashing.of(data)(.sha256))
    let slice = data.dropFirst(3)
    for part in [data, slice, Data()] { #expect(BodyHashing.of(part)(.sha256) == messageHash(.sha256, Array(part))) }
    #expect(BodyHashing.ofFile(at: directory.file("nothing"))(.sha256) == nil)
    #expect(BodyHashing.impossible(.md5) == nil)
  }

  @Test func clientNonces() {
    let nonces = (0..<100).map { _ in clientNonce() }
    #expect(Set(nonces).count == 100)
    #expect(nonces.allSatisfy { $0.utf8.count == 32 && $0.allSatisfy(\.isHexDigit) })
  }
}
