import Larkspur
import LarkspurCommand
import Testing

@Suite struct ChecksumListTests {
  private static let one = String(repeating: "1", count: 64)
  private static let two = String(repeating: "2", count: 64)

  @Test(arguments: [
    "\(one)  a.bin\n\(two)  b.bin\n", "\(two) *b.bin\n\(one) *a.bin",
    "SHA256 (a.bin) = \(one)\r\nSHA256 (b.bin) = \(two)\r\n",
    "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\(one)  ./dir/a.bin\n", "\(one.uppercased())\n", "  \(one)  ",
    "\(one)  a.bin\n\(one)  a.bin\n",
    "MD5 (a.bin) = \(one.prefix(32))\nSHA256 (a.bin) = \(one)\nSHA1 (a.bin) = \(one.prefix(40))",
    "\(one)\ta.bin", "\(one)  -\n", "\(one)  a.bin  ",
  ])
  func found(text: String) throws {
    #expect(try ChecksumList(text).checksum(of: ["a.bin"]) == DownloadChecksum("sha256:\(Self.one)"))
  }

  @Test(arguments: [
    "", "\(one)  b.bin", "\(one.dropLast())  a.bin", "SHA512 (a.bin) = \(one)", "\(one)  a.bin.sig", "\(one)\n\(two)\n",
    "a.bin  \(one)", "\(one)  x a.bin",
  ])
  func missing(text: String) {
    #expect(throws: ChecksumList.Failure.missing("a.bin")) { try ChecksumList(text).checksum(of: ["a.bin"]) }
  }

  @Test func ambiguous() throws {
    let list = ChecksumList("\(Self.one)  x/a.bin\n\(Self.two)  y/a.bin\n\(Self.two)  b.bin")
    #expect(throws: ChecksumList.Failure.ambiguous("a.bin")) { try list.checksum(of: ["a.bin"]) }
    // The file has another name here than at the server.
    #expect(try list.checksum(of: ["c.bin", "b.bin"]) == DownloadChecksum("sha256:\(Self.two)"))
    #expect(throws: ChecksumList.Failure.ambiguous("b.bin")) { try list.checksum(of: ["b.bin", "a.bin"]) }
  }

  @Test func namesWithBackslashes() throws {
    #expect(try ChecksumList("\\\(Self.one)  a\\\\b").checksum(of: ["a\\b"]) == DownloadChecksum("sha256:\(Self.one)"))
  }

  @Test func algorithms() throws {
    for (count, name) in [(32, "md5"), (40, "sha1"), (64, "sha256"), (128, "sha512")] {
      let hash = String(repeating: "a", count: count)
      #expect(try ChecksumList(hash).checksum(of: ["f"]) == DownloadChecksum("\(name):\(hash)"))
    }
  }
}
