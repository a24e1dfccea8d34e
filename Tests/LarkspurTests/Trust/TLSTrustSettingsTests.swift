import Foundation
import LarkspurTLS
import LarkspurTestServer
import Testing

@testable import Larkspur

@Suite struct TLSTrustSettingsTests {
  static func certificate() throws -> TLSCertificate {
    try #require(TLSCertificate(Data(try TestCA().rootCertificateDER)))
  }

  @Test func nothingIsSet() {
    var configuration = TLSConfiguration()
    TLSTrustSettings().apply(to: &configuration)
    #expect(TLSTrustSettings().isStandard && TLSTrustSettings().mismatchReport == nil)
    guard case .system = configuration.roots else { return #expect(Bool(false)) }
    #expect(configuration.pins.hosts.isEmpty && configuration.identity == nil)
    #expect(!configuration.dangerouslyAllowsLegacyKeyExchange)
    #expect(!configuration.dangerouslyAllowsAnyCertificate && configuration.revocationLists.isEmpty)
  }

  /// Each setting reaches the TLS configuration, and each makes the settings nonstandard, so that their context is not
  /// shared.
  @Test func everythingIsSet() throws {
    let certificate = try Self.certificate()
    let client = try TestCA().issue()
    let identity = try Larkspur.ClientIdentity(pkcs12: Data(try client.pkcs12(password: "p")), password: "p")
    let pinned = try #require(PinnedHost("A.example", pins: [.publicKey(of: certificate), .certificate(certificate)]))
    let changes: [(inout TLSTrustSettings) -> Void] = [
      { $0.roots = .only([certificate]) }, { $0.roots = .systemAnd([certificate]) },
      { $0.revocationLists = [Data([1])] },
      { $0.pins = [pinned] }, { $0.pinMismatched = { _ in } }, { $0.identity = identity },
      { $0.rootFiles = ["/roots.pem"] }, { $0.fileFailed = { _, _ in } },
      { $0.dangerousKeyLogFile = "/keys" },
      { $0.dangerouslyAllowsAnyCertificate = true }, { $0.dangerouslyAllowsLegacyKeyExchange = true },
    ]
    var all = TLSTrustSettings()
    for change in changes {
      var settings = TLSTrustSettings()
      change(&settings)
      #expect(!settings.isStandard)
      change(&all)
    }
    var configuration = TLSConfiguration()
    all.apply(to: &configuration)
    guard case .systemAnd(let roots) = configuration.roots else { return #expect(Bool(false)) }
    #expect(roots.map(\.der) == [Array(certificate.der)])
    #expect(configuration.revocationLists == [[1]] && configuration.dangerouslyAllowsAnyCertificate)
    #expect(configuration.dangerouslyAllowsLegacyKeyExchange && configuration.rootFiles == ["/roots.pem"])
    #expect(configuration.dangerousKeyLogFile == "/keys")
    #expect(configuration.pins.hosts.map(\.name) == ["a.example"] && pinned.name == "a.example")
    #expect(configuration.pins.hosts.first?.pins.count == 2)
    #expect(configuration.identity?.certificate == identity.certificate.inner)
  }

  @Test func pins() throws {
    let certificate = try Self.certificate()
    let pin = CertificatePin.publicKey(of: certificate)
    #expect(CertificatePin(pin.description) == pin && pin.description.hasPrefix("sha256/"))
    #expect(CertificatePin.certificate(certificate).description == pin.description)
    for text in ["", "sha256/", "sha1/AAAA", pin.description + "="] { #expect(CertificatePin(text) == nil) }
    #expect(PinnedHost("no host", pins: [pin]) == nil)
  }

  @Test func failuresHaveWords() throws {
    let certificate = try Self.certificate()
    let wanted = CertificatePin.publicKey(of: try Self.certificate())
    let server = try #require(ServerName(host: "a.example"))
    let host = try #require(PinnedHost("a.example", pins: [wanted]))
    let policy = PinPolicy([host.inner])
    let mismatch = try #require(policy.mismatches([certificate.inner], for: server).first?.mismatch)
    let failure = PinningFailure(mismatch)
    #expect(failure.host == "a.example" && failure.expected == [wanted.description])
    #expect(failure.seen == [CertificatePin.publicKey(of: certificate).description])
    #expect(failure.description.contains(failure.seen[0]))
    let none = try #require(policy.mismatches([], for: server).first?.mismatch)
    #expect(PinningFailure(none).description.contains("no verified chain"))
  }
}
