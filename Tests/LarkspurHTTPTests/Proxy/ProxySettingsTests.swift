import LarkspurHTTP
import Testing

@Suite struct ProxyExceptionsTests {
  static let table: [(list: String, host: String, port: UInt16, isExcepted: Bool)] = [
    ("", "example.com", 80, false), (",, ,", "example.com", 80, false), ("*", "example.com", 80, true),
    ("a.example, *", "::1", 80, true),
    // A host, and the hosts below it.
    ("example.com", "example.com", 80, true), ("example.com", "www.example.com", 443, true),
    ("example.com", "a.b.example.com", 80, true), ("example.com", "evil-example.com", 80, false),
    ("example.com", "example.com.evil", 80, false), ("example.com", "com", 80, false),
    ("example.com", "xample.com", 80, false), (".example.com", "www.example.com", 80, true),
    (".example.com", "example.com", 80, true), (".example.com", "evil-example.com", 80, false),
    ("*.example.com", "www.example.com", 80, false), ("..", "a", 80, false), (".", "a", 80, false),
    // PendingNotification case, and the trailing dot.
    ("Example.COM", "eXample.com", 80, true), ("example.com.", "example.com", 80, true),
    ("example.com", "www.example.com.", 80, true), ("example.com.", "evil-example.com.", 80, false),
    // Separators.
    ("a.example,b.example", "b.example", 80, true), ("a.example b.example", "b.example", 80, true),
    (" a.example ,\tb.example ", "a.example", 80, true), ("a.example;b.example", "b.example", 80, false),
    // Ports.
    ("example.com:8080", "example.com", 8080, true), ("example.com:8080", "www.example.com", 8080, true),
    ("example.com:8080", "example.com", 80, false), ("example.com:x", "example.com", 80, false),
    ("example.com:65537", "example.com", 1, false), ("192.0.2.1:80", "192.0.2.1", 80, true),
    ("192.0.2.1:80", "192.0.2.1", 81, false), ("[::1]:80", "::1", 80, true), ("[::1]:80", "[::1]", 81, false),
    // Addresses.
    ("192.0.2.1", "192.0.2.1", 80, true), ("192.0.2.1", "192.0.2.10", 80, false), ("2.1", "192.0.2.1", 80, false),
    ("192.0.2.1", "1.192.0.2.1", 80, false), ("2001:db8::1", "2001:DB8:0:0::1", 80, true),
    ("[2001:db8::1]", "2001:db8::1", 80, true), ("2001:db8::1", "[2001:db8::1]", 80, true),
    ("2001:db8::1", "2001:db8::2", 80, false), ("fe80::1", "fe80::1%eth0", 80, true), ("[::1", "::1", 80, false),
    // Zones.
    ("fe80::1%eth0", "fe80::1%eth0", 80, true), ("fe80::1%25eth0", "fe80::1%eth0", 80, true),
    ("[fe80::1%25eth0]", "fe80::1%eth0", 80, true), ("[fe80::1%eth0]:80", "fe80::1%eth0", 80, true),
    ("[fe80::1%eth0]:80", "fe80::1%eth0", 81, false), ("fe80::1%eth0", "fe80::1%eth1", 80, false),
    ("fe80::1%eth0", "fe80::1", 80, false), ("fe80::1%eth0", "fe80::2%eth0", 80, false),
    ("fe80::/10", "fe80::1%eth0", 80, true), ("fe80::1", "[fe80::1%25eth0]", 80, true),
    // Networks.
    ("169.254/16", "169.254.7.7", 80, true), ("169.254/16", "169.255.0.1", 80, false),
    ("127.*", "127.0.0.1", 80, true), ("10.1.*", "10.1.2.3", 80, true), ("10.1.*", "10.2.0.1", 80, false),
    ("example.*", "example.org", 80, false),
    ("192.0.2.0/24", "192.0.2.255", 80, true), ("192.0.2.0/24", "192.0.3.0", 80, false),
    ("192.0.2.77/24", "192.0.2.1", 80, true), ("0.0.0.0/0", "203.0.113.9", 80, true),
    ("0.0.0.0/0", "2001:db8::1", 80, false), ("0.0.0.0/0", "example.com", 80, false),
    ("192.0.2.1/32", "192.0.2.1", 80, true), ("192.0.2.1/32", "192.0.2.0", 80, false),
    ("192.0.2.1/31", "192.0.2.0", 80, true), ("192.0.2.1/33", "192.0.2.1", 80, false),
    ("192.0.2.1/", "192.0.2.1", 80, false), ("192.0.2.1/+8", "192.0.2.1", 80, false),
    ("192.0.2.1/99999999999999999999", "192.0.2.1", 80, false), ("example.com/8", "example.com", 80, false),
    ("2001:db8::/32", "2001:db8:ffff::1", 80, true), ("2001:db8::/32", "2001:db9::1", 80, false),
    ("2001:db8::/64", "2001:db8:0:0:8000::", 80, true), ("2001:db8::/65", "2001:db8:0:0:8000::", 80, false),
    ("2001:db8::1/128", "2001:db8::1", 80, true), ("2001:db8::1/128", "2001:db8::3", 80, false),
    ("2001:db8::1/129", "2001:db8::1", 80, false), ("[2001:db8::]/32", "2001:db8::9", 80, true),
    ("::/0", "2001:db8::1", 80, true), ("::/0", "192.0.2.1", 80, false),
  ]

  @Test(arguments: table) func matching(row: (list: String, host: String, port: UInt16, isExcepted: Bool)) {
    #expect(ProxyExceptions(row.list).contains(host: row.host, port: row.port) == row.isExcepted)
  }
}

@Suite struct ProxySettingsTests {
  /// The environment, and the ports of the proxies for http and https; 0 for none.
  static let table: [(environment: [String: String], http: UInt16, https: UInt16)] = [
    ([:], 0, 0), (["http_proxy": "p:1"], 1, 0), (["HTTP_PROXY": "p:1"], 0, 0),
    (["https_proxy": "p:1", "HTTPS_PROXY": "p:2"], 0, 1), (["HTTPS_PROXY": "p:2"], 0, 2),
    (["all_proxy": "p:1", "ALL_PROXY": "p:2"], 1, 1), (["ALL_PROXY": "p:2"], 2, 2),
    (["http_proxy": "p:1", "all_proxy": "p:2"], 1, 2), (["https_proxy": "p:1", "ALL_PROXY": "p:2"], 2, 1),
    // An empty variable counts as absent.
    (["http_proxy": "", "all_proxy": "p:2"], 2, 2), (["https_proxy": "", "HTTPS_PROXY": "p:2"], 0, 2),
    (["all_proxy": "p:1", "no_proxy": "b.example"], 1, 1), (["all_proxy": "p:1", "no_proxy": "a.example"], 0, 0),
    (["all_proxy": "p:1", "NO_PROXY": "a.example"], 0, 0),
    (["all_proxy": "p:1", "no_proxy": "b.example", "NO_PROXY": "a.example"], 1, 1),
    (["all_proxy": "p:1", "no_proxy": "", "NO_PROXY": "a.example"], 0, 0),
    (["all_proxy": "p:1", "no_proxy": "a.example:443"], 1, 0),
  ]

  @Test(arguments: table) func environment(row: (environment: [String: String], http: UInt16, https: UInt16)) throws {
    let settings = try ProxySettings(environment: row.environment)
    #expect(settings.rule(toHost: "a.example", port: 80, isSecure: false)?.proxy.port ?? 0 == row.http)
    #expect(settings.rule(toHost: "a.example", port: 443, isSecure: true)?.proxy.port ?? 0 == row.https)
    #expect(row.environment.keys.allSatisfy { ProxySettings.variables.contains($0) || $0 == "HTTP_PROXY" })
  }

  @Test(arguments: ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
  func variablesWithZones(name: String) throws {
    for value in ["http://[fe80::1%25lo]:3128", "socks5h://[fe80::1%lo]:3128", "[fe80::1%lo]:3128"] {
      let settings = try ProxySettings(environment: [name: value])
      let proxy = (settings.http ?? settings.https) ?? settings.all
      #expect(proxy?.host == "fe80::1%lo" && proxy?.port == 3128)
    }
  }

  @Test(arguments: ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
  func badVariables(name: String) {
    let error = #expect(throws: ProxySettings.InvalidVariable.self) {
      try ProxySettings(environment: [name: "user:secret@p:x"])
    }
    #expect(error?.error == .portInvalid)
    #expect(error?.description.hasPrefix(name) == true)
  }
}
