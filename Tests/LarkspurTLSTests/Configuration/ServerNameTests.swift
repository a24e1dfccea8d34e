import LarkspurTLS
import Testing

@Suite struct ServerNameTests {
  @Test(arguments: [
    ("example.org", "example.org"), ("EXAMPLE.Org", "example.org"), ("example.org.", "example.org"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("a_b.example", "a_b.example"),
    ("1.2.3.4.example", "1.2.3.4.example"), ("0:0:0:0:0:0:0:1", "::1"), ("2001:DB8::1", "2001:db8::1"),
    ("localhost", "localhost"),
    ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("fe80::1%eth0", "fe80::1"),
  ])
  func reads(host: String, text: String) {
    #expect(ServerName(host: host)?.text == text)
  }

  /// CVE-2022-27775: an address with another zone is another server, so that no session of one is resumed with the
  /// other.
  @Test func zonesAreDistinct() {
    let keys = ["fe80::1", "fe80::1%eth0", "fe80::1%eth1"].compactMap(ServerName.init).map {
      SessionKey(server: $0, port: 443)
    }
    #expect(Set(keys).count == 3)
  }

  /// CVE-2021-0341: only ASCII letters are compared without regard to case. The Kelvin sign is not a `k`.
  @Test(arguments: [
    "", ".", ".example.com", "a..b", "..", "127.1", "0x7f000001", "010.0.0.1", "00.0.0.1",
    "256.0.0.1", "1.2.3", "1.2.3.4.5", "1..2.3", "::1\0", "1:2:3:4:5:6:7:8:9", "1.2.3.4:80", "::g", "1.2.3.4.",
    "1.2.3.4 a", "[::1]",
    "1.2.3.4%x", "b\u{fc}cher.example", "\u{212a}elvin.example", "a b", "a\0b", "a\u{7f}b",
    String(repeating: "a", count: 254),
  ])
  func refuses(host: String) {
    #expect(ServerName(host: host) == nil)
  }
}
