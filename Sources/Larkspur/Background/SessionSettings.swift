import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransfers

/// The settings of a background session, as they travel to the process that carries out its tasks, and as they are kept
/// beside the session's journal.
///
/// The form is JSON with sorted keys: equal settings have equal bytes, by which the service sees that a program's
/// settings have changed. The bytes contain secrets: passwords, and the key of a client certificate.
struct SessionSettings: Codable {
  /// The version of the form. Every change of the parts or of their meaning gets a new one.
  static let version = 4

  /// The reason for which bytes are no settings, or settings cannot travel at all.
  enum Failure: Error, Hashable {
    /// Another version of Larkspur has written the settings.
    case otherVersion(Int)
    /// The bytes are incomplete or have changed. The text names what is wrong.
    case damaged(String)
    /// The settings have more bytes than `TransferSession.settingsBytesMax`.
    case tooLarge(Int)
  }

  /// Settings as bytes.
  struct Encoded {
    var bytes: [UInt8]
    /// The parts of the configuration that stay behind, for the log: the tasks are carried out without them.
    var leftBehind: [String]
  }

  private struct Version: Codable {
    var version: Int
  }

  var version = Self.version
  var settings: URLSessionConfiguration.Settings
  var proxies: [String: ProxyValue]?
  /// The proxies that count in place of `proxies`, if there are any.
  var proxyConfigurations: [ProxyConfiguration.Content]
  /// The environment variables of the program that name proxies. They count without `proxies`.
  var proxyEnvironment: [String: String]
  /// The configuration's fields, and those that name the program and its user's languages.
  var additionalHeaders: [String: String]
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
  /// - Throws: `tooLarge`, and `damaged` for a value that the form cannot hold.
  static func encoded(_ configuration: URLSessionConfiguration) throws(Failure) -> Encoded {
    var leftBehind: [String] = []
    let settings = SessionSettings(configuration.storage, &leftBehind)
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    let data: Data
    do {
      data = try encoder.encode(settings)
    } catch {
      throw .damaged("the settings cannot be written: \(error)")
    }
    guard data.count <= TransferSession.settingsBytesMax else { throw .tooLarge(data.count) }
    return Encoded(bytes: Array(data), leftBehind: leftBehind)
  }

  private init(_ storage: URLSessionConfiguration.Storage, _ leftBehind: inout [String]) {
    settings = storage.settings
    proxies = storage.connectionProxyDictionary.map { dictionary in
      Self.texts(dictionary, "an entry of connectionProxyDictionary", &leftBehind, ProxyValue.init)
    }
    proxyConfigurations = storage.proxyConfigurations.map(\.content)
    proxyEnvironment = storage.connectionProxyDictionary == nil ? SessionProxies.environment(of: storage) : [:]
    additionalHeaders = Self.texts(
      storage.additionalHeaders ?? [:], "a field of httpAdditionalHeaders", &leftBehind
    ) { $0 as? String }
    for field in RequestComposer.programFields
    where !additionalHeaders.keys.contains(where: { $0.equalsIgnoringCase(field.name) }) {
      additionalHeaders[field.name] = field.value
    }
    cookies = storage.cookieStorage.map { Cookies($0, &leftBehind) }
    credentials = storage.credentialStorage.map { Credentials($0, &leftBehind) }
    trust = TrustSettings(storage.trust, &leftBehind)
    if storage.protocolClasses?.isEmpty == false { leftBehind.append("the classes of protocolClasses") }
    if storage.cache != nil { leftBehind.append("the cache of urlCache") }
  }

  /// Returns the entries of a dictionary whose keys are texts.
  private static func texts<Value>(
    _ dictionary: [AnyHashable: Any], _ words: String, _ leftBehind: inout [String], _ make: (Any) -> Value?
  ) -> [String: Value] {
    var result: [String: Value] = [:]
    for (key, value) in dictionary {
      if let name = key.base as? String, let value = make(value) {
        result[name] = value
      } else if !leftBehind.contains(words) {
        leftBehind.append(words)
      }
    }
    return result
  }

  // MARK: - Reading

  /// Returns the configuration of a background session. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  static func configuration(
    from bytes: [UInt8], identifier: String
  ) throws(Failure) -> URLSessionConfiguration {
    guard bytes.count <= TransferSession.settingsBytesMax else { throw .tooLarge(bytes.count) }
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    let settings: SessionSettings
    do {
      let data = Data(bytes)
      let found = try decoder.decode(Version.self, from: data).version
      guard found == version else { throw Failure.otherVersion(found) }
      settings = try decoder.decode(SessionSettings.self, from: data)
    } catch let failure as Failure {
      throw failure
    } catch {
      throw .damaged("the settings cannot be read: \(error)")
    }
    var storage = URLSessionConfiguration.background(withIdentifier: identifier).storage
    try settings.apply(to: &storage)
    return URLSessionConfiguration(storage: storage)
  }

  private func apply(to storage: inout URLSessionConfiguration.Storage) throws(Failure) {
    storage.settings = settings
    storage.connectionProxyDictionary = proxies.map { proxies in
      Dictionary(uniqueKeysWithValues: proxies.map { (AnyHashable($0), $1.value) })
    }
    var configurations: [ProxyConfiguration] = []
    for content in proxyConfigurations { configurations.append(try Self.known(ProxyConfiguration(content), "proxy")) }
    storage.proxyConfigurations = configurations
    storage.proxyEnvironment = proxyEnvironment
    storage.additionalHeaders = additionalHeaders
    storage.cookieStorage = cookies?.storage()
    storage.credentialStorage = try credentials?.storage()
    storage.trust = try trust.settings()
  }

  /// Returns a value that this version knows.
  static func known<Value>(_ value: Value?, _ words: String) throws(Failure) -> Value {
    guard let value else { throw .damaged("a \(words) is not known") }
    return value
  }
}

extension SessionSettings.Failure: CustomStringConvertible {
  var description: String {
    switch self {
    case .otherVersion(let found):
      "the settings of the session have version \(found), and this version of Larkspur reads \(SessionSettings.version)"
    case .damaged(let reason): reason
    case .tooLarge(let count):
      "the settings of the session have \(count) bytes, and may have \(TransferSession.settingsBytesMax)"
    }
  }
}

extension SessionSettings {
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
