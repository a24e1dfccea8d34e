import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransfers
import LarkspurTransport
import Testing

@testable import Larkspur

@Suite struct SessionSettingsTests {
  private static func bytes(_ configuration: URLSessionConfiguration) throws -> [UInt8] {
    let encoded = try SessionSettings.encoded(configuration)
    #expect(encoded.leftBehind == [])
    return encoded.bytes
  }

  private static func read(_ bytes: [UInt8]) throws -> URLSessionConfiguration {
    try SessionSettings.configuration(from: bytes, identifier: "read")
  }

  private static func full() -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.background(withIdentifier: "full")
    configuration.sharedContainerIdentifier = "group.a"
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.timeoutIntervalForRequest = 12.5
    configuration.timeoutIntervalForResource = .infinity
    configuration.timeoutIntervalForConnection = 3
    configuration.networkServiceType = .background
    configuration.allowsCellularAccess = false
    configuration.allowsExpensiveNetworkAccess = false
    configuration.allowsConstrainedNetworkAccess = false
    configuration.allowsUltraConstrainedNetworkAccess = true
    configuration.waitsForConnectivity = true
    configuration.isDiscretionary = true
    configuration.sessionSendsLaunchEvents = false
    configuration.connectionProxyDictionary = [
      kCFNetworkProxiesHTTPEnable: true, kCFNetworkProxiesHTTPProxy: "proxy.example.com",
      kCFNetworkProxiesHTTPPort: 8080, kCFNetworkProxiesExceptionsList: ["a", "b"], "fraction": 0.5,
    ]
    configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
    configuration.tlsMaximumSupportedProtocolVersion = .TLSv13
    configuration.httpShouldUsePipelining = true
    configuration.httpShouldSetCookies = false
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpAdditionalHeaders = [
      "X-One": "1", "Authorization": "Bearer größe", "accept-language": "tlh",
    ]
    configuration.httpMaximumConnectionsPerHost = 3
    configuration.httpCookieStorage = nil
    configuration.urlCredentialStorage = nil
    configuration.resumableUploadDraft = .draft01
    configuration.hostOverrides.set("a.example", port: 80, to: .addresses(["192.0.2.1"]))
    configuration.hostOverrides.set("b.example", to: .host("c.example", port: 8080))
    configuration.hostOverrides.set("*", to: .socket(path: "/run/a.socket"))
    configuration.timeouts.firstByte = .milliseconds(1500)
    configuration.timeouts.lowestRate = .init(bytes: 1, over: .seconds(60))
    configuration.localEndpoint = LocalEndpoint(address: .loopback(port: 0), interface: "lo")
    configuration.rateLimits.requestsPerSecondPerHost = 0.5
    configuration.segmentedDownloads = .init()
    configuration.segmentedDownloads?.connections = 5
    return configuration
  }

  @Test func theStandardSettings() throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    let read = try Self.read(Self.bytes(configuration))
    #expect(read.identifier == "read")
    #expect(read.httpCookieStorage?.disk?.path == HTTPCookieStorage.shared.disk?.path)
    #expect(read.urlCredentialStorage?.path == URLCredentialStorage.shared.path)
    #expect(
      read.storage.settings.cookieAcceptPolicy == nil && read.urlCache == nil && read.connectionProxyDictionary == nil)
    #expect(read.timeoutIntervalForResource == 7 * 24 * 60 * 60)
    #expect(try Self.bytes(read) == Self.bytes(configuration))
  }

  @Test func everySettingTravels() throws {
    let configuration = Self.full()
    for host in ["a", "b", "c", "d"] { configuration.storage.settings.hostOverrides.set(host, to: .socket(path: "/s")) }
    configuration.storage.settings.timeouts.lowestRate = Timeouts.LowestRate(bytes: 7, over: .seconds(3))
    let bytes = try Self.bytes(configuration)
    let read = try Self.read(bytes)
    #expect(try Self.bytes(read) == bytes)
    #expect(read.storage.settings.hostOverrides == configuration.storage.settings.hostOverrides)
    #expect(read.storage.settings.timeouts == configuration.storage.settings.timeouts)
    #expect(read.sharedContainerIdentifier == "group.a" && read.requestCachePolicy == .reloadIgnoringLocalCacheData)
    #expect(read.timeoutIntervalForRequest == 12.5 && read.timeoutIntervalForResource == .infinity)
    #expect(read.timeoutIntervalForConnection == 3 && read.networkServiceType == .background)
    #expect(!read.allowsCellularAccess && !read.allowsExpensiveNetworkAccess && !read.allowsConstrainedNetworkAccess)
    #expect(read.allowsUltraConstrainedNetworkAccess)
    #expect(read.waitsForConnectivity && read.isDiscretionary && !read.sessionSendsLaunchEvents)
    #expect(read.tlsMinimumSupportedProtocolVersion == .TLSv13 && read.tlsMaximumSupportedProtocolVersion == .TLSv13)
    #expect(read.httpShouldUsePipelining && !read.httpShouldSetCookies && read.httpCookieAcceptPolicy == .never)
    #expect(
      read.httpAdditionalHeaders as? [String: String] == [
        "X-One": "1", "Authorization": "Bearer größe", "accept-language": "tlh",
        "User-Agent": RequestComposer.userAgent,
      ])
    #expect(read.httpMaximumConnectionsPerHost == 3)
    #expect(read.segmentedDownloads?.connections == 5 && read.segmentedDownloads?.smallestPiece == 1 << 20)
    #expect(read.httpCookieStorage == nil && read.urlCredentialStorage == nil)
    let proxies = try #require(read.connectionProxyDictionary)
    #expect(proxies[kCFNetworkProxiesHTTPEnable] as? Bool == true)
    #expect(proxies[kCFNetworkProxiesHTTPProxy] as? String == "proxy.example.com")
    #expect(proxies[kCFNetworkProxiesHTTPPort] as? Int == 8080)
    #expect(proxies[kCFNetworkProxiesExceptionsList] as? [String] == ["a", "b"])
    #expect(proxies["fraction"] as? Double == 0.5)
  }

  /// A plain value of a configuration travels because it is one of its `Settings`.
  @Test func noFieldIsForgotten() throws {
    // The session's place and launch command, which are not in its settings, and the environment, which has a form of its
    // own.
    let others = ["identifier", "launchCommand", "proxyEnvironment", "transferStateHome"]
    let storage = Self.full().storage
    let plain = Mirror(reflecting: storage).children.filter { type(of: $0.value) is any Encodable.Type }
    #expect(plain.compactMap(\.label).sorted() == (others + ["settings"]).sorted())
    // The names of fields with a wrapper begin with a line.
    let names = Mirror(reflecting: storage.settings).children.compactMap { $0.label?.drop { $0 == "_" } }
    let form = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Everything(storage.settings)))
    let written = try #require((form as? [String: Any])?["settings"] as? [String: Any])
    #expect(written.keys.sorted() == names.map(String.init).sorted())
  }

  /// Settings as JSON, whose numbers must be finite.
  private struct Everything: Encodable {
    var settings: URLSessionConfiguration.Settings

    init(_ settings: URLSessionConfiguration.Settings) {
      self.settings = settings
      self.settings.timeoutIntervalForResource = 1
    }
  }

  /// Other names in the form need another version: a runner of an earlier Larkspur does not know them. If this test
  /// fails, raise `SessionSettings.version` once for each release, and write the new version and hash here.
  @Test func otherNamesHaveAnotherVersion() throws {
    let configuration = Self.full()
    configuration.httpCookieStorage = .shared
    configuration.urlCredentialStorage = URLCredentialStorage()
    let server = URLProtectionSpace(
      host: "example.com", port: 443, protocol: "https", realm: "a",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    configuration.urlCredentialStorage?.set(
      URLCredential(user: "one", password: "1", persistence: .forSession), for: server)
    configuration.proxyConfigurations = [
      ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "proxy.example", port: 3128))
    ]
    let certificate = try TestCA().issue()
    let root = try #require(TLSCertificate(Data(certificate.certificateDER)))
    configuration.tlsTrustSettings.pins = [try #require(PinnedHost("example.com", pins: [.certificate(root)]))]
    configuration.tlsTrustSettings.identity = try ClientIdentity(
      certificates: Data(certificate.certificateDER), key: Data(certificate.privateKeyDER))
    configuration.storage.trust.rootPlaces = RootPlaces(file: "/roots.pem", directories: "/one")
    let encoder = JSONEncoder()
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "+", negativeInfinity: "-", nan: "0")
    let settings = try SessionSettings(encoded: Self.bytes(configuration))
    let text = String(decoding: try encoder.encode(settings), as: UTF8.self)
    let names = Set(text.matches(of: /"([A-Za-z]+)":/).map(\.output.1)).sorted().joined(separator: " ")
    #expect(
      "\(SessionSettings.version) \(CacheHash(names).hexadecimal)" == "6 e60666078d3935b3944527c73522c0bf",
      "the names: \(names)")
  }

  /// The environment that counts is the program's, and not the service's.
  @Test func theEnvironmentTravels() throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    configuration.storage.proxyEnvironment = ["https_proxy": "http://me:word@proxy:3128", "no_proxy": "a.example"]
    configuration.storage.trust.rootPlaces = RootPlaces(file: "/roots.pem", directories: "/one:two")
    let read = try Self.read(Self.bytes(configuration)).storage
    #expect(read.proxyEnvironment == configuration.storage.proxyEnvironment)
    let proxies = try SessionProxies.settings(read)
    #expect(proxies.rule(toHost: "b.example", port: 443, isSecure: true)?.proxy.host == "proxy")
    #expect(proxies.rule(toHost: "a.example", port: 443, isSecure: true) == nil)
    #expect(read.trust.rootPlaces?.file == "/roots.pem")
    #expect(
      read.trust.rootPlaces?.directories == "/one:\(FileManager.default.currentDirectoryPath)/two")
    // Without variables the service's own must not count either.
    configuration.storage.proxyEnvironment = [:]
    configuration.storage.trust.rootPlaces = RootPlaces(file: nil, directories: nil)
    let none = try Self.read(Self.bytes(configuration)).storage
    #expect(none.proxyEnvironment == [:] && none.trust.rootPlaces == RootPlaces(file: nil, directories: nil))
  }

  @Test func trustTravels() throws {
    let authority = try TestCA()
    let root = try #require(TLSCertificate(Data(authority.rootCertificateDER)))
    let client = try authority.issue()
    let configuration = Self.full()
    var trust = TLSTrustSettings()
    trust.roots = .only([root])
    trust.revocationLists = [Data([1, 2, 3])]
    trust.pins = [
      try #require(
        PinnedHost(
          "example.com", includesSubdomains: true, pins: [.certificate(root), .publicKey(of: root)],
          looksAtLeafOnly: true, reportsOnly: true)),
      try #require(PinnedHost("192.0.2.1", pins: [])),
    ]
    trust.identity = try ClientIdentity(
      certificates: Data(client.certificateDER), key: Data(client.privateKeyDER)
    ).with(chain: [root])
    trust.dangerouslyAllowsLegacyKeyExchange = true
    trust.dangerouslyAllowsAnyCertificate = true
    configuration.tlsTrustSettings = trust
    let bytes = try Self.bytes(configuration)
    let read = try Self.read(bytes).tlsTrustSettings
    guard case .only(let roots) = read.roots else { throw TransferValueError.damaged("roots") }
    #expect(roots == [root])
    #expect(read.revocationLists == trust.revocationLists && read.pins == trust.pins)
    #expect(read.identity?.certificate == trust.identity?.certificate && read.identity?.chain == [root])
    #expect(read.dangerouslyAllowsLegacyKeyExchange && read.dangerouslyAllowsAnyCertificate)
    #expect(try Self.bytes(Self.read(bytes)) == bytes)
  }

  @Test func credentialsTravelByValue() throws {
    let configuration = Self.full()
    let storage = URLCredentialStorage()
    let server = URLProtectionSpace(
      host: "example.com", port: 443, protocol: "https", realm: "a",
      authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    let proxy = URLProtectionSpace(
      proxyHost: "proxy", port: 8080, type: NSURLProtectionSpaceHTTPProxy, realm: nil,
      authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
    storage.set(URLCredential(user: "one", password: "1", persistence: .forSession), for: server)
    storage.setDefaultCredential(URLCredential(user: "two", password: "2", persistence: .permanent), for: server)
    storage.set(URLCredential(user: "three", password: "", persistence: .forSession), for: proxy)
    configuration.urlCredentialStorage = storage
    let read = try #require(try Self.read(Self.bytes(configuration)).urlCredentialStorage)
    #expect(read.path == nil)
    #expect(read.allCredentials == storage.allCredentials)
    #expect(read.defaultCredential(for: server)?.user == "two")
    #expect(read.defaultCredential(for: proxy)?.password == "")
  }

  private final class OwnCookies: HTTPCookieStorage, @unchecked Sendable {}
  private final class OwnCredentials: URLCredentialStorage, @unchecked Sendable {}
  private final class OwnProtocol: URLProtocol {}

  /// What cannot travel is named.
  @Test func whatStaysBehind() throws {
    let changes: [(String, (URLSessionConfiguration) -> Void)] = [
      ("the classes of protocolClasses", { $0.protocolClasses = [OwnProtocol.self] }),
      ("the program's own class of httpCookieStorage", { $0.httpCookieStorage = OwnCookies() }),
      ("the program's own class of urlCredentialStorage", { $0.urlCredentialStorage = OwnCredentials() }),
      ("the cache of urlCache", { $0.urlCache = .shared }),
      ("the function pinMismatched of tlsTrustSettings", { $0.tlsTrustSettings.pinMismatched = { _ in } }),
      ("the function fileFailed of tlsTrustSettings", { $0.tlsTrustSettings.fileFailed = { _, _ in } }),
      ("the function provideIdentity of tlsTrustSettings", { $0.tlsTrustSettings.provideIdentity = { _, _ in nil } }),
      ("a field of httpAdditionalHeaders", { $0.httpAdditionalHeaders = ["A": Date(), "B": "b", 3: "c"] }),
      ("an entry of connectionProxyDictionary", { $0.connectionProxyDictionary = ["A": Date()] }),
    ]
    for (words, change) in changes {
      let configuration = Self.full()
      change(configuration)
      #expect(try SessionSettings.encoded(configuration).leftBehind == [words])
    }
  }

  @Test func oddNumbersAreNoTrap() throws {
    var settings = try SessionSettings(encoded: Self.bytes(Self.full()))
    for (time, limit) in [(-1e300, Int.min), (1e300, .max), (.nan, 0), (.infinity, -1), (-.infinity, 1)] {
      settings.settings.timeoutIntervalForRequest = time
      settings.settings.timeoutIntervalForResource = time
      settings.settings.timeoutForConnection = time
      settings.settings.maximumConnectionsPerHost = limit
      let configuration = try Self.read(settings.encoded())
      #expect(configuration.httpMaximumConnectionsPerHost == limit)
      for read in [configuration.timeoutIntervalForResource, configuration.timeoutIntervalForConnection] {
        #expect(read?.description == time.description)
      }
      let session = URLSession(configuration: configuration.ofAttempts)
      #expect(try session.core.engine() != nil)
      session.invalidateAndCancel()
    }
  }

  /// Another process has another current directory.
  @Test func pathsOfSocketsAreAbsolute() throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    configuration.hostOverrides.set("a", to: .socket(path: "a.socket"))
    configuration.hostOverrides.set("b", to: .socket(path: "\0b"))
    var expected = HostOverrides()
    expected.set("a", to: .socket(path: FileManager.default.currentDirectoryPath + "/a.socket"))
    expected.set("b", to: .socket(path: "\0b"))
    #expect(try Self.read(Self.bytes(configuration)).hostOverrides == expected)
  }

  /// Returns the error of reading bytes as settings, or `nil` if there is none.
  private static func error(_ bytes: [UInt8]) -> TransferValueError? {
    do throws(TransferValueError) {
      _ = try SessionSettings.configuration(from: bytes, identifier: "a")
      return nil
    } catch {
      return error
    }
  }

  private struct Raw<Value: Codable>: TransferValue {
    var value: Value
    var invalidPart: String? { nil }
  }

  private static func refuses<Value: RawRepresentable>(_ type: Value.Type, _ raw: Value.RawValue) throws
  where Value.RawValue: Codable {
    let bytes = try Raw(value: raw).bytes()
    #expect(throws: TransferValueError.damaged("a setting has the value 9, which is not known"), "\(type)") {
      try Raw<RawSetting<Value>>(bytes: bytes[...])
    }
  }

  @Test func valuesThatAreNotKnown() throws {
    try Self.refuses(URLRequest.CachePolicy.self, 9)
    try Self.refuses(URLRequest.NetworkServiceType.self, 9)
    try Self.refuses(tls_protocol_version_t.self, 9)
    try Self.refuses(HTTPCookie.AcceptPolicy.self, 9)
    try Self.refuses(URLSessionConfiguration.MultipathServiceType.self, 9)
    #expect(throws: TransferValueError.self) { try Raw<ResumableUploadVersion>(bytes: Raw(value: 4).bytes()[...]) }
  }

  @Test func bytesThatAreNoSettings() throws {
    let bytes = try Self.bytes(Self.full())
    for count in stride(from: 0, to: bytes.count, by: 7) { #expect(Self.error(Array(bytes.prefix(count))) != nil) }
    #expect(Self.error(bytes + [0]) != nil)
    #expect(Self.error([3] + bytes.dropFirst()) == .otherVersion(3, known: SessionSettings.version))
    // The earlier form, which began with a brace.
    guard case .otherVersion = Self.error(Array(#"{"version":3}"#.utf8)) else {
      throw TransferValueError.damaged("")
    }
    #expect(
      Self.error([UInt8](repeating: 32, count: TransferSession.settingsBytesMax + 1))
        == .tooLarge((1 << 20) + 1, max: 1 << 20))
    let configuration = Self.full()
    configuration.httpAdditionalHeaders = ["X": String(repeating: "x", count: 1 << 20)]
    #expect(throws: TransferValueError.self) { try SessionSettings.encoded(configuration) }
  }

  @Test func rulesOfTheParts() throws {
    let settings = try SessionSettings(encoded: Self.bytes(Self.full()))
    var odd = settings
    let space = URLProtectionSpace(host: "a", port: 1 << 16, protocol: nil, realm: nil, authenticationMethod: nil)
    let credential = URLCredential(user: "a", password: "b", persistence: .forSession)
    let record = try #require(CredentialRecord(credential, space, isDefault: false))
    odd.credentials = SessionSettings.Credentials(path: nil, values: [record])
    #expect(throws: TransferValueError.self) { try odd.encoded() }
    odd = settings
    odd.trust.pins = [
      SessionSettings.TrustSettings.Host(
        name: "a", includesSubdomains: false, certificates: [], keys: [[1]], looksAtLeafOnly: false, reportsOnly: false)
    ]
    #expect(throws: TransferValueError.self) { try odd.encoded() }
    // Names that occur twice are no trap.
    odd = settings
    odd.proxyEnvironment = [Field("a", "b"), Field("a", "c")]
    odd.proxies = [.init(name: "a", value: .flag(true)), .init(name: "a", value: .list(["b"]))]
    let configuration = try Self.read(odd.encoded())
    #expect(configuration.storage.proxyEnvironment == ["a": "c"])
    #expect(configuration.connectionProxyDictionary?["a"] as? [String] == ["b"])
  }
}
