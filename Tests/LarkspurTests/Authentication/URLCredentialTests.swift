import Foundation
import LarkspurHTTP
import LarkspurTestServer
import Testing

@testable import Larkspur

@Suite struct URLCredentialTests {
  @Test func passwords() {
    let credential = URLCredential(user: "u", password: "", persistence: .forSession)
    #expect(credential.user == "u" && credential.password == "" && credential.hasPassword)
    #expect(credential.persistence == .forSession && credential.identity == nil && credential.certificates.isEmpty)
    #expect((credential.copy() as? URLCredential) === credential)
  }

  @Test func composedForm() {
    let credential = URLCredential(user: "e\u{301}", password: "a\u{308}", persistence: .none)
    // Swift compares strings by canonical equivalence, so the test compares their UTF-8 bytes.
    #expect(credential.passwordCredential.map { Array($0.user.utf8) } == Array("\u{e9}".utf8))
    #expect(credential.passwordCredential.map { Array($0.password.utf8) } == Array("\u{e4}".utf8))
    #expect(credential.user?.utf8.count == 3)
  }

  @Test func equality() {
    let credential = URLCredential(user: "u", password: "p", persistence: .forSession)
    let same = URLCredential(user: "u", password: "p", persistence: .forSession)
    #expect(credential == same && credential.hash == same.hash)
    for other in [
      URLCredential(user: "v", password: "p", persistence: .forSession),
      URLCredential(user: "u", password: "q", persistence: .forSession),
      URLCredential(user: "u", password: "p", persistence: .permanent),
    ] {
      #expect(credential != other)
    }
    #expect(!credential.isEqual(nil) && !credential.isEqual("u"))
  }

  @Test(arguments: [URLCredential.Persistence.none, .forSession, .permanent, .synchronizable])
  func archives(persistence: URLCredential.Persistence) throws {
    let credential = URLCredential(user: "jürgen", password: "p\n", persistence: persistence)
    let data = try NSKeyedArchiver.archivedData(withRootObject: credential, requiringSecureCoding: true)
    let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLCredential.self, from: data)
    #expect(read == credential)
  }

  @Test func whatIsNotArchived() throws {
    let client = try TestCA().issue()
    let identity = try ClientIdentity(
      certificates: Data(client.chainPEM.utf8), key: Data(client.privateKeyPEM.utf8))
    let credential = URLCredential(identity: identity, certificates: nil, persistence: .forSession)
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    credential.encode(with: archiver)
    let unarchiver = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    #expect(URLCredential(coder: unarchiver) == nil)
  }

  @Test func identities() throws {
    let ca = try TestCA().intermediate()
    let client = try ca.issue()
    let identity = try ClientIdentity(
      certificates: Data(client.chainPEM.utf8), key: Data(client.privateKeyPEM.utf8))
    let credential = URLCredential(identity: identity, certificates: nil, persistence: .permanent)
    #expect(credential.user == nil && !credential.hasPassword && credential.identity?.chain.count == 1)
    #expect(credential.certificates as? [SecCertificate] == identity.chain)
    let alone = URLCredential(identity: identity, certificates: [], persistence: .permanent)
    #expect(alone.identity?.chain == [] && alone.identity?.certificate == identity.certificate)
    #expect(alone != credential)
    #expect(credential == URLCredential(identity: identity, certificates: identity.chain, persistence: .permanent))
  }

  /// The description of a credential does not contain its password, so a log does not either.
  @Test func noPasswordInWords() {
    let credential = URLCredential(user: "u", password: "secret", persistence: .forSession)
    #expect(!"\(credential) \(String(reflecting: credential))".contains("secret"))
  }
}
