import LarkspurHTTP
import Testing

@Suite struct ProxyTests {
  static let good: [(text: String, kind: Proxy.Kind, host: String, port: UInt16)] = [
    ("proxy", .http, "proxy", 1080), ("proxy:3128", .http, "proxy", 3128), ("http://proxy", .http, "proxy", 1080),
    ("http://proxy:80/", .http, "proxy", 80), ("https://proxy", .https, "proxy", 443),
    ("HTTPS://Proxy.Example.", .https, "Proxy.Example.", 443), ("socks://p", .socks4, "p", 1080),
    ("socks4://p:9", .socks4, "p", 9), ("socks4a://p", .socks4a, "p", 1080), ("socks5://p", .socks5, "p", 1080),
    ("socks5h://p:65535", .socks5h, "p", 65535), ("192.0.2.1:8080", .http, "192.0.2.1", 8080),
    ("http://[2001:db8::1]:3128", .http, "2001:db8::1", 3128), ("[::1]", .http, "::1", 1080),
    ("proxy:", .http, "proxy", 1080), ("http://my_proxy:1/", .http, "my_proxy", 1),
    ("http://[fe80::1%25lo]:3128", .http, "fe80::1%lo", 3128), ("[fe80::1%lo]", .http, "fe80::1%lo", 1080),
    ("https://me:x@[fe80::1%25Eth0.5]/", .https, "fe80::1%Eth0.5", 443),
    ("socks5h://[fe80::1%2]:9", .socks5h, "fe80::1%2", 9), ("socks4://[::1%25lo]", .socks4, "::1%lo", 1080),
  ]

  @Test(arguments: good) func read(row: (text: String, kind: Proxy.Kind, host: String, port: UInt16)) throws {
    let proxy = try Proxy(row.text)
    #expect(proxy.kind == row.kind)
    #expect(proxy.host == row.host)
    #expect(proxy.port == row.port)
    #expect((proxy.credentials != nil) == row.text.contains("@"))
    #expect(try Proxy(proxy.description) == Proxy(row.kind, host: row.host, port: row.port))
  }

  /// A path is ignored, as in curl.
  @Test(arguments: ["http://proxy:3128/path", "proxy:3128//", "http://proxy:3128/"]) func aPathMeansNothing(
    text: String
  ) throws {
    #expect(try Proxy(text).description == "http://proxy:3128")
  }

  static let bad: [(text: String, error: Proxy.Invalid)] = [
    ("", .hostInvalid), ("http://", .hostInvalid), ("ftp://proxy", .schemeUnsupported("ftp")),
    ("socks6://proxy", .schemeUnsupported("socks6")), ("://proxy", .schemeUnsupported("")),
    ("proxy:0", .portInvalid), ("proxy:65536", .portInvalid), ("proxy:+1", .portInvalid), ("proxy:x", .portInvalid),
    ("http:///path", .hostInvalid), ("2001:db8::1", .hostInvalid),
    ("[2001:db8::1", .hostInvalid), ("[2001:db8::1]x", .hostInvalid), ("[proxy]", .hostInvalid),
    ("[fe80::1%]", .hostInvalid), ("[fe80::1%a b]", .hostInvalid), ("[fe80::1%a/b]", .hostInvalid),
    ("[proxy%25lo]", .hostInvalid), ("192.0.2.1%25lo", .hostInvalid), ("fe80::1%lo", .hostInvalid),
    ("[fe80::1%25lo", .hostInvalid), ("[fe80::1%25lo]:65536", .portInvalid), ("[fe80::1%lo]:-1", .portInvalid),
    ("pro xy", .hostInvalid), ("pröxy", .hostInvalid), ("a\0b", .hostInvalid),
    ("a\r\nb", .hostInvalid), (String(repeating: "a", count: 254), .hostInvalid),
  ]

  @Test(arguments: bad) func refuse(row: (text: String, error: Proxy.Invalid)) {
    #expect(throws: row.error) { try Proxy(row.text) }
  }

  /// A host with a zone, as a program gives it in parts, is accepted with and without brackets and encoding.
  @Test(arguments: [
    "fe80::1%lo", "fe80::1%25lo", "[fe80::1%lo]", "[fe80::1%25lo]",
  ]) func addressesWithZones(host: String) throws {
    let proxy = try Proxy(.http, host: host, port: 3128)
    #expect(proxy.host == "fe80::1%lo" && proxy.description == "http://[fe80::1%25lo]:3128")
  }

  @Test(arguments: ["[proxy]", "[192.0.2.1]", "[::1", "::1]", "fe80::1%", "[]"]) func hostsThatAreNone(host: String) {
    #expect(throws: Proxy.Invalid.hostInvalid) { try Proxy(.http, host: host) }
  }

  @Test func theLongestHost() throws {
    let host = String(repeating: "a", count: 253)
    #expect(try Proxy(host).host == host)
  }

  static let logins: [(text: String, user: String, password: String, basic: String)] = [
    ("user:secret@p", "user", "secret", "Basic dXNlcjpzZWNyZXQ="), ("http://user@p", "user", "", "Basic dXNlcjo="),
    ("a%40b:c%3Ad%2f@p", "a@b", "c:d/", "Basic YUBiOmM6ZC8="), ("u:p@ss@p", "u", "p@ss", "Basic dTpwQHNz"),
    ("u:100%@p", "u", "100%", "Basic dToxMDAl"), (":@p", "", "", "Basic Og=="),
    ("u:a:b@p", "u", "a:b", "Basic dTphOmI="),
  ]

  @Test(arguments: logins) func credentials(row: (text: String, user: String, password: String, basic: String)) throws {
    let proxy = try Proxy(row.text)
    let credentials = try #require(proxy.credentials)
    #expect(credentials == UserInfo(user: Array(row.user.utf8), password: Array(row.password.utf8)))
    #expect(credentials.basicAuthorization == row.basic)
    // The description, which may be logged, does not contain the credentials.
    #expect(proxy.description == "http://p:1080")
  }

  @Test(arguments: [
    ("http://user:secret@", Proxy.Invalid.hostInvalid), ("http://user:secret@p:x", .portInvalid),
    ("http://user:secret@/x", .hostInvalid),
  ])
  func errorsHoldNoPassword(text: String, error: Proxy.Invalid) {
    #expect(throws: error) { try Proxy(text) }
    #expect(!error.description.contains("secret"))
  }
}

@Suite struct HostAddressTests {
  @Test(
    arguments: [
      ("192.0.2.1", "192.0.2.1", nil, "192.0.2.1"), ("FE80::1", "FE80::1", nil, "FE80::1"),
      ("fe80::1%eth0", "fe80::1", "eth0", "fe80::1%eth0"), ("fe80::1%25eth0", "fe80::1", "eth0", "fe80::1%eth0"),
      ("fe80::1%25", "fe80::1", "25", "fe80::1%25"), ("fe80::1%2", "fe80::1", "2", "fe80::1%2"),
      ("fe80::1%2525", "fe80::1", "25", "fe80::1%25"),
    ] as [(String, String, String?, String)])
  func reads(text: String, literal: String, zone: String?, host: String) throws {
    let address = try #require(HostAddress(text))
    #expect(address.literal == literal && address.zone == zone && address.host == host)
    #expect(address.address == IPAddress(literal))
    #expect(address.bracketed == "[\(literal)\(zone.map { "%25\($0)" } ?? "")]")
  }

  @Test(arguments: ["", "a", "%lo", "fe80::1%", "192.0.2.1%lo", "fe80::1%a%b", "fe80::1%a b", "[fe80::1]", "fe80::1%é"])
  func neither(text: String) { #expect(HostAddress(text) == nil) }

  /// Zones are local names, so peers do not receive them.
  @Test func authorities() {
    #expect(authority("fe80::1%lo", 80) == "[fe80::1]:80" && authority("fe80::1", 80) == "[fe80::1]:80")
    #expect(authority("a.example", 1) == "a.example:1" && authority("192.0.2.1", 1) == "192.0.2.1:1")
  }
}

@Suite struct IPAddressTests {
  @Test(
    arguments: [
      ("0.0.0.0", 0), ("192.0.2.1", 0xc000_0201), ("255.255.255.255", 0xffff_ffff),
    ] as [(String, UInt32)])
  func ipv4(text: String, number: UInt32) { #expect(IPAddress(text) == .ipv4(number)) }

  @Test(
    arguments: [
      ("::", 0, 0), ("::1", 0, 1), ("1::", 1 << 48, 0),
      ("2001:db8::8:800:200C:417A", 0x2001_0db8_0000_0000, 0x8_0800_200c_417a),
      ("1:2:3:4:5:6:7:8", 0x1_0002_0003_0004, 0x5_0006_0007_0008), ("::ffff:192.0.2.1", 0, 0xffff_c000_0201),
      ("1:2:3:4:5:6:192.0.2.1", 0x1_0002_0003_0004, 0x5_0006_c000_0201),
      ("1::4:5:6:7:8", 0x1_0000_0000_0004, 0x5_0006_0007_0008),
    ] as [(String, UInt64, UInt64)])
  func ipv6(text: String, high: UInt64, low: UInt64) { #expect(IPAddress(text) == .ipv6(high: high, low: low)) }

  @Test(arguments: [
    "", "1", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.04", "+1.2.3.4", "1.2.3.", "0x1.2.3.4", ":", ":::",
    "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", "::1%lo", "[::1]", "1:2:3:4:5:6:7::8", "::1.2.3",
    "1.2.3.4::", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:", "::192.0.2.1:1",
  ])
  func neither(text: String) { #expect(IPAddress(text) == nil) }
}
