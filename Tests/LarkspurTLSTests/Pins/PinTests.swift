import LarkspurTLS
import Testing

@Suite struct PinTests {
  let digest = [UInt8](0..<32)
  let text = "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

  @Test func readsWhatItWrites() throws {
    let pin = try #require(Pin(text))
    #expect(pin == .publicKeySHA256(digest))
    #expect(pin.description == text)
  }

  @Test(arguments: [
    "", "sha256/", "sha1/AAECAwQFBgcICQoLDA0ODxAREhM=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
    "sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
    "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= ", "SHA256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh-_", "sha256/=AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
  ])
  func refuses(text: String) {
    #expect(Pin(text) == nil)
  }

  @Test(arguments: [
    ("example.org", false, "example.org", true), ("example.org", false, "EXAMPLE.org.", true),
    ("Example.Org.", false, "example.org", true), ("example.org", false, "www.example.org", false),
    ("example.org", true, "www.example.org", true), ("example.org", true, "a.b.example.org", true),
    ("example.org", true, "badexample.org", false), ("example.org", true, "org", false),
    ("1.2.3.4", false, "1.2.3.4", true), ("1.2.3.4", true, "1.2.3.5", false),
    ("2001:DB8::1", false, "2001:db8:0::1", true), ("::1", false, "::1", true),
  ])
  func covers(name: String, includesSubdomains: Bool, host: String, isCovered: Bool) throws {
    let pin = try #require(Pin(text))
    let entry = try #require(PinPolicy.Host(name, includesSubdomains: includesSubdomains, pins: [pin]))
    let server = try #require(ServerName(host: host))
    // The empty chain matches no pin, so that every policy that applies has a mismatch.
    #expect(PinPolicy([entry]).mismatches([], for: server).count == (isCovered ? 1 : 0))
  }

  @Test func theLongestNameCounts() throws {
    let pin = try #require(Pin(text))
    let domain = try #require(PinPolicy.Host("example.org", includesSubdomains: true, pins: []))
    let host = try #require(PinPolicy.Host("www.example.org", pins: [pin]))
    let policy = PinPolicy([domain, host])
    let www = try #require(ServerName(host: "www.example.org"))
    #expect(policy.mismatches([], for: www).map(\.mismatch.expected) == [[pin]])
    let other = try #require(ServerName(host: "ftp.example.org"))
    #expect(policy.mismatches([], for: other).map(\.mismatch.expected) == [[]])
  }
}
