import LarkspurTLS
import LarkspurTestServer
import Testing

@Suite struct CertificateTests {
  @Test func facts() throws {
    let ca = try TestCA(name: "Root of facts")
    var request = TestCertificate.Request(names: ["a.example", "*.b.example"], ipAddresses: ["127.0.0.1", "::1"])
    request.commonName = "Fact"
    request.organization = "B\u{fc}cher"
    request.serialNumber = [1, 2, 3]
    request.mustStaple = true
    let made = try ca.issue(request)
    let certificate = try #require(Certificate.read(made.certificateDER)?.first)
    #expect(certificate.der == made.certificateDER)
    #expect(certificate.subject.contains("CN=Fact") && certificate.subject.contains("O=B\u{fc}cher"))
    #expect(certificate.issuer == "CN=Root of facts")
    #expect(certificate.serial == [1, 2, 3])
    #expect(certificate.mustStaple)
    #expect(certificate.notAfter - certificate.notBefore == Int64(request.notAfter - request.notBefore))
    #expect(
      certificate.names == [
        .dns("a.example"), .dns("*.b.example"), .address([127, 0, 0, 1]),
        .address([UInt8](repeating: 0, count: 15) + [1]),
      ])
    #expect(certificate.sha256.count == 32 && certificate.publicKeySHA256.count == 32)
  }

  @Test func namesAreHarmless() throws {
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.alternativeNames = [.dns(Array("a.example\0.evil".utf8) + [0x1b, 0xff])]
    request.commonName = "\u{1b}[31mred"
    let certificate = try #require(Certificate.read(try TestCA().issue(request).certificateDER)?.first)
    #expect(certificate.names == [.dns("a.example\\x00.evil\\x1b\\xff")])
    #expect(!certificate.subject.utf8.contains(0x1b))
  }

  @Test func manyInOneFile() throws {
    let ca = try TestCA()
    let leaf = try ca.issue()
    let pem = "some words\n" + leaf.certificatePEM + "\n" + ca.rootCertificatePEM
    #expect(Certificate.read(Array(pem.utf8))?.map(\.der) == [leaf.certificateDER, ca.rootCertificateDER])
  }

  /// A damaged block does not make other blocks unreadable, wherever the block stands and however it is damaged.
  @Test func damagedBlocks() throws {
    let good = try (0..<3).map { try TestCA(name: "\($0)").certificate }
    let pem = good[0].certificatePEM
    let damaged = [
      String(pem.dropLast(40)), pem.replacing("MII", with: "AII"), pem.replacing("MII", with: "!II"),
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n",
      pem.replacing("-----END CERTIFICATE-----", with: "-----END X509 CRL-----"),
    ]
    for block in damaged {
      #expect(Certificate.read(Array(block.utf8)) == nil)
      for index in 0...2 {
        var blocks = good.map(\.certificatePEM)
        blocks.insert(block + "\n", at: index)
        #expect(Certificate.read(Array(blocks.joined().utf8))?.map(\.der) == good.map(\.certificateDER))
        // A client identity must not use another certificate in place of the damaged one.
        blocks = [block + "\n", good[1].certificatePEM]
        #expect(throws: TLSError(.identityUnreadable)) {
          try ClientIdentity(certificates: Array(blocks.joined().utf8), key: good[1].privateKeyDER)
        }
      }
    }
    // Keys and revocation lists among the blocks do not count as damage.
    let mixed = good[1].privateKeyPEM + good[0].certificatePEM.replacing("\n", with: "\r\n")
    #expect(Certificate.read(Array(mixed.utf8))?.map(\.der) == [good[0].certificateDER])
  }

  @Test func whatIsNoCertificate() throws {
    let der = try TestCA().issue().certificateDER
    #expect(Certificate.read([]) == nil)
    #expect(Certificate.read(Array("no certificate".utf8)) == nil)
    #expect(Certificate.read(Array(der.dropLast())) == nil)
    #expect(Certificate.read(der + [0]) == nil)
    let pem = try TestCA().issue().certificatePEM
    #expect(Certificate.read(Array(pem.utf8.dropLast(40))) == nil)
  }

  /// An encrypted block counts as damaged: OpenSSL would ask for the password at the terminal.
  @Test func anEncryptedBlockIsDamaged() throws {
    let pem = try TestCA().issue().certificatePEM
    let head = "-----BEGIN CERTIFICATE-----\n"
    let fields = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
    let encrypted = pem.replacing(head, with: head + fields)
    #expect(encrypted != pem && Certificate.read(Array(encrypted.utf8)) == nil)
    #expect(Certificate.read(Array((encrypted + pem).utf8))?.count == 1)
  }

  @Test func equality() throws {
    let der = try TestCA().issue().certificateDER
    #expect(Certificate.read(der)?.first == Certificate.read(der)?.first)
    #expect(Certificate.read(der)?.first != Certificate.read(try TestCA().issue().certificateDER)?.first)
  }
}
