import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Tests how the proxies of a configuration's dictionary are parsed.
@Suite struct SessionProxiesTests {
  private static let kinds = ["HTTP", "HTTPS", "SOCKS"]

  private func proxy(_ kind: String, _ settings: ProxySettings) -> Proxy? {
    switch kind {
    case "HTTP": settings.http
    case "HTTPS": settings.https
    default: settings.all
    }
  }

  private static let goodValues: [(any Sendable, UInt16)] = [
    (3128, 3128), (UInt16(65535), 65535), (3128.0, 3128), (NSNumber(value: 1), 1), ("3128", 3128), (Int8(1), 1),
  ]

  @Test(arguments: kinds, goodValues.indices) func ports(kind: String, index: Int) throws {
    let (value, port) = Self.goodValues[index]
    let settings = try SessionProxies.settings([kind + "Enable": 1, kind + "Proxy": "p", kind + "Port": value])
    #expect(proxy(kind, settings)?.port == port)
  }

  @Test(arguments: kinds) func thePortOfTheKind(kind: String) throws {
    #expect(proxy(kind, try SessionProxies.settings([kind + "Enable": true, kind + "Proxy": "p"]))?.port == 1080)
  }

  private static let badValues: [any Sendable] = [
    99999, 65536, -1, 0, Int.min, UInt64.max, 3128.5, Double.nan, Double.infinity, -0.5, 1e300, NSNumber(value: 99999),
    true,
    "99999", "-1", "+80", "", " 80", "0", "0x50", "http", Date(), [80], NSNull(),
  ]

  /// An invalid port is an error, not replaced by the default port: the proxy there would be another one.
  @Test(arguments: kinds, badValues.indices) func badPorts(kind: String, index: Int) {
    #expect(throws: Proxy.Invalid.portInvalid, "\(Self.badValues[index])") {
      try SessionProxies.settings([kind + "Enable": 1, kind + "Proxy": "p", kind + "Port": Self.badValues[index]])
    }
  }

  /// The settings of a proxy that is not enabled are not validated.
  @Test(arguments: kinds) func aProxyThatIsOff(kind: String) throws {
    for enabled in [0, false, nil] as [(any Sendable)?] {
      var dictionary: [AnyHashable: Any] = [kind + "Proxy": "p", kind + "Port": -1]
      dictionary[kind + "Enable"] = enabled
      #expect(proxy(kind, try SessionProxies.settings(dictionary)) == nil)
    }
    #expect(proxy(kind, try SessionProxies.settings([kind + "Enable": 1, kind + "Port": -1])) == nil)
  }

  @Test(arguments: kinds, ["fe80::1%lo", "fe80::1%25lo", "[fe80::1%lo]", "[fe80::1%25lo]"])
  func zones(kind: String, host: String) throws {
    let settings = try SessionProxies.settings([kind + "Enable": 1, kind + "Proxy": host, kind + "Port": 3128])
    let scheme = kind == "SOCKS" ? "socks5h" : "http"
    #expect(proxy(kind, settings)?.host == "fe80::1%lo")
    #expect(proxy(kind, settings)?.description == "\(scheme)://[fe80::1%25lo]:3128")
  }

  @Test(arguments: kinds) func badHosts(kind: String) {
    let hosts: [any Sendable] = [
      "", "fe80::1%", "[p]", "a b", "http://", "http://a b", "http://http://p", "p/", 7, NSNull(),
    ]
    for host in hosts {
      #expect(throws: Proxy.Invalid.hostInvalid, "\(host)") {
        try SessionProxies.settings([kind + "Enable": 1, kind + "Proxy": host, kind + "Port": 3128])
      }
    }
  }

  // MARK: - Kinds

  /// The kinds of proxies and their default ports are those of the environment variables.
  @Test(arguments: kinds, Proxy.Kind.allCases) func kindsBeforeTheHost(key: String, kind: Proxy.Kind) throws {
    for host in ["p", "[fe80::1%lo]"] {
      let expected = try Proxy("\(kind.rawValue)://\(host)")
      let named = try SessionProxies.settings([key + "Enable": 1, key + "Proxy": "\(kind.rawValue)://\(host)"])
      #expect(proxy(key, named) == expected)
    }
    let capitals = try SessionProxies.settings([
      key + "Enable": 1, key + "Proxy": kind.rawValue.uppercased() + "://p", key + "Port": 3128,
    ])
    #expect(proxy(key, capitals)?.kind == kind)
    #expect(proxy(key, capitals)?.port == 3128)
  }

  @Test(arguments: kinds, ["ftp", "socks6", ""]) func unknownKinds(key: String, kind: String) {
    #expect(throws: Proxy.Invalid.schemeUnsupported(kind)) {
      try SessionProxies.settings([key + "Enable": 1, key + "Proxy": kind + "://p"])
    }
  }

  /// A load with an invalid proxy port fails before it connects.
  @Test(arguments: [99999, -1]) func theLoadFails(port: Int) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": port]
    let url = try #require(URL(string: "http://a.invalid/"))
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: configuration).data(from: url)
    }
    #expect(error?.code == .cannotConnectToHost)
    #expect(error?.localizedDescription.contains("port is not a number from 1 to 65535") == true)
  }
}
