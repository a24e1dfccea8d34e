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

  @Test func whatIsNoCertificate() throws {
    let der = try TestCA().issue().certificateDER
    #expect(Certificate.read([]) == nil)
    #expect(Certificate.read(Array("no certificate".utf8)) == nil)
    #expect(Certificate.read(Array(der.dropLast())) == nil)
    #expect(Certificate.read(der + [0]) == nil)
    let pem = try TestCA().issue().certificatePEM
    #expect(Certificate.read(Array(pem.utf8.dropLast(40))) == nil)
  }

  @Test func equality() throws {
    let der = try TestCA().issue().certificateDER
    #expect(Certificate.read(der)?.first == Certificate.read(der)?.first)
    #expect(Certificate.read(der)?.first != Certificate.read(try TestCA().issue().certificateDER)?.first)
  }
}
