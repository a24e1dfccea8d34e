import LarkspurTLS
import LarkspurTestServer
import Testing

/// Returns the problem that reading an identity fails with, or `nil` if it does not fail.
func problem(_ body: () throws -> ClientIdentity) -> TLSError.Problem? {
  do {
    _ = try body()
    return nil
  } catch {
    return (error as? TLSError)?.problem
  }
}

@Suite struct ClientIdentityTests {
  @Test func pair() throws {
    let ca = try TestCA().intermediate()
    let client = try ca.issue()
    let identity = try ClientIdentity(
      certificates: Array(client.chainPEM.utf8), key: Array(client.privateKeyPEM.utf8))
    #expect(identity.certificate.der == client.certificateDER)
    #expect(identity.chain.first?.der == ca.certificate.certificateDER)
  }

  @Test func encryptedKey() throws {
    let client = try TestCA().issue()
    let (certificate, key) = (
      Array(client.certificatePEM.utf8), Array(try client.encryptedPrivateKeyPEM(passphrase: "open").utf8)
    )
    _ = try ClientIdentity(certificates: certificate, key: key, password: "open")
    #expect(problem { try ClientIdentity(certificates: certificate, key: key, password: "wrong") } == .passwordWrong)
    #expect(problem { try ClientIdentity(certificates: certificate, key: key) } == .passwordWrong)
  }

  @Test func archive() throws {
    let ca = try TestCA()
    let client = try ca.issue()
    let archive = try client.pkcs12(password: "open")
    let identity = try ClientIdentity(pkcs12: archive, password: "open")
    #expect(identity.certificate.der == client.certificateDER)
    #expect(problem { try ClientIdentity(pkcs12: archive, password: "wrong") } == .passwordWrong)
    #expect(problem { try ClientIdentity(pkcs12: Array(archive.dropLast()), password: "open") } == .identityUnreadable)
    #expect(problem { try ClientIdentity(pkcs12: [], password: "") } == .identityUnreadable)
  }

  @Test func whatDoesNotFit() throws {
    let ca = try TestCA()
    let (one, other) = (try ca.issue(), try ca.issue())
    let key = Array(other.privateKeyPEM.utf8)
    #expect(problem { try ClientIdentity(certificates: Array(one.certificatePEM.utf8), key: key) } == .keyMismatch)
    #expect(problem { try ClientIdentity(certificates: [1, 2, 3], key: key) } == .identityUnreadable)
    #expect(
      problem { try ClientIdentity(certificates: Array(one.certificatePEM.utf8), key: [1]) } == .identityUnreadable)
  }
}
