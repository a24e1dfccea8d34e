import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransfers

/// The settings of a background session, as they travel to the process that carries out its tasks, and as they are kept
/// beside the session's journal.
///
/// The form is four bytes of the version and then a `TransferValue`. Equal settings have equal bytes, by which the service
/// sees that a program's settings have changed. The bytes contain secrets: passwords, and the key of a client certificate.
struct SessionSettings {
  /// The version of the form. Every change of the parts or of their meaning gets a new one.
  static let version: UInt32 = 6

  /// Settings as bytes.
  struct Encoded {
    var bytes: [UInt8]
    /// The parts of the configuration that stay behind, for the log: the tasks are carried out without them.
    var leftBehind: [String]
  }

  var settings: URLSessionConfiguration.Settings
  var proxies: [Proxy]?
  /// The proxies that count in place of `proxies`, if there are any.
  var proxyConfigurations: [ProxyConfiguration.Content]
  /// The environment variables of the program that name proxies. They count without `proxies`.
  var proxyEnvironment: FieldList
  /// The configuration's fields, and those that name the program and its user's languages.
  var additionalHeaders: FieldList
  var cookies: Cookies?
  var credentials: Credentials?
  var trust: TrustSettings

  /// A storage of cookies, by its file.
  struct Cookies: Codable {
    /// `nil` for a storage in memory.
    var path: String?
    var acceptPolicy: RawSetting<HTTPCookie.AcceptPolicy>
  }

  /// A storage of credentials.
  struct Credentials: Codable {
    /// The file with the permanent credentials, or `nil` for a storage in memory.
    var path: String?
    /// The credentials that are in no file, by value.
    var values: [CredentialRecord]
  }

  // MARK: - Writing

  /// Returns the settings of a configuration as bytes.
  ///
  /// - Throws: `tooLarge`, and `invalid` for a value that the form cannot hold.
  static func encoded(_ configuration: URLSessionConfiguration) throws(TransferValueError) -> Encoded {
    var leftBehind: [String] = []
    let settings = SessionSettings(configuration.storage, &leftBehind)
    return Encoded(bytes: try settings.encoded(), leftBehind: leftBehind)
  }

  func encoded() throws(TransferValueError) -> [UInt8] {
    let bytes = try bytes(version: Self.version)
    guard bytes.count <= TransferSession.settingsBytesMax else {
      throw .tooLarge(bytes.count, max: TransferSession.settingsBytesMax)
    }
    return bytes
  }

  private init(_ storage: URLSessionConfiguration.Storage, _ leftBehind: inout [String]) {
    settings = storage.settings
    settings.hostOverrides.makeSocketPathsAbsolute(TrustSettings.absolute)
    proxies = storage.connectionProxyDictionary.map { dictionary in
      Self.entries(dictionary, "an entry of connectionProxyDictionary", &leftBehind) { name, value in
        ProxyValue(value).map { Proxy(name: name, value: $0) }
      }
    }
    proxyConfigurations = storage.proxyConfigurations.map(\.content)
    let environment = storage.connectionProxyDictionary == nil ? SessionProxies.environment(of: storage) : [:]
    proxyEnvironment = environment.sorted { $0.key < $1.key }.map { Field($0.key, $0.value) }
    additionalHeaders = Self.entries(
      storage.additionalHeaders ?? [:], "a field of httpAdditionalHeaders", &leftBehind
    ) { name, value in (value as? String).map { Field(name, $0) } }
    for field in RequestComposer.programFields where !additionalHeaders.contains(named: field.name) {
      additionalHeaders.append(field)
    }
    additionalHeaders.sort { $0.name < $1.name }
    cookies = storage.cookieStorage.map { Cookies($0, &leftBehind) }
    credentials = storage.credentialStorage.map { Credentials($0, &leftBehind) }
    trust = TrustSettings(storage.trust, &leftBehind)
    if storage.protocolClasses?.isEmpty == false { leftBehind.append("the classes of protocolClasses") }
    if storage.cache != nil { leftBehind.append("the cache of urlCache") }
  }

  /// Returns the entries of a dictionary whose keys are texts, in the order of the keys.
  private static func entries<Entry>(
    _ dictionary: [AnyHashable: Any], _ words: String, _ leftBehind: inout [String], _ make: (String, Any) -> Entry?
  ) -> [Entry] {
    var entries: [(name: String, entry: Entry)] = []
    for (key, value) in dictionary {
      if let name = key.base as? String, let entry = make(name, value) {
        entries.append((name, entry))
      } else if !leftBehind.contains(words) {
        leftBehind.append(words)
      }
    }
    return entries.sorted { $0.name < $1.name }.map(\.entry)
  }

  // MARK: - Reading

  /// Returns the configuration of a background session. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  static func configuration(
    from bytes: [UInt8], identifier: String
  ) throws(TransferValueError) -> URLSessionConfiguration {
    let settings = try SessionSettings(encoded: bytes)
    var storage = URLSessionConfiguration.background(withIdentifier: identifier).storage
    try settings.apply(to: &storage)
    return URLSessionConfiguration(storage: storage)
  }

  init(encoded bytes: [UInt8]) throws(TransferValueError) {
    guard bytes.count <= TransferSession.settingsBytesMax else {
      throw .tooLarge(bytes.count, max: TransferSession.settingsBytesMax)
    }
    try self.init(bytes: bytes, version: Self.version)
  }

  private func apply(to storage: inout URLSessionConfiguration.Storage) throws(TransferValueError) {
    storage.settings = settings
    storage.connectionProxyDictionary = proxies.map { proxies in
      Dictionary(proxies.map { (AnyHashable($0.name), $0.value.value) }) { $1 }
    }
    var configurations: [ProxyConfiguration] = []
    for content in proxyConfigurations { configurations.append(try Self.known(ProxyConfiguration(content), "proxy")) }
    storage.proxyConfigurations = configurations
    storage.proxyEnvironment = Self.texts(proxyEnvironment)
    storage.additionalHeaders = Self.texts(additionalHeaders)
    storage.cookieStorage = cookies?.storage()
    storage.credentialStorage = try credentials?.storage()
    storage.trust = try trust.settings()
  }

  private static func texts(_ fields: FieldList) -> [String: String] {
    Dictionary(fields.map { ($0.name, $0.value) }) { $1 }
  }

  /// Returns a value that this version knows.
  static func known<Value>(_ value: Value?, _ words: String) throws(TransferValueError) -> Value {
    guard let value else { throw .damaged("a \(words) is not known") }
    return value
  }
}

extension SessionSettings: TransferValue {
  /// The rules that the types of the parts do not have.
  var invalidPart: String? {
    if credentials?.values.contains(where: { !(0...Int(UInt16.max) ~= $0.port) }) == true { return "a port" }
    let keys = trust.pins.lazy.flatMap(\.keys)
    return keys.allSatisfy { $0.count == SHA256Digest.byteCount } ? nil : "a pin"
  }
}

extension SessionSettings {
  /// An entry of `connectionProxyDictionary`.
  struct Proxy: Codable {
    var name: String
    var value: ProxyValue
  }

  /// A value of `connectionProxyDictionary`.
  enum ProxyValue: Codable {
    case text(String)
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case list([String])

    /// Creates the value, or returns `nil` for one of another type.
    init?(_ value: Any) {
      switch value {
      case let text as String: self = .text(text)
      case let list as [String]: self = .list(list)
      case let flag as Bool where type(of: value) == Bool.self: self = .flag(flag)
      case let number as NSNumber:
        self = Int64(exactly: number.doubleValue).map { .integer($0) } ?? .number(number.doubleValue)
      default: return nil
      }
    }

    var value: Any {
      switch self {
      case .text(let text): text
      case .flag(let flag): flag
      case .integer(let number): Int(number)
      case .number(let number): number
      case .list(let list): list
      }
    }
  }
}
