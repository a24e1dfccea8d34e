import Foundation
import LarkspurHTTP
import LarkspurIO

/// Reads a session's proxies: from its configurations, or else from its dictionary, or else from the environment.
enum SessionProxies {
  static func settings(_ storage: URLSessionConfiguration.Storage) throws -> ProxySettings {
    guard storage.proxyConfigurations.isEmpty else {
      var settings = ProxySettings()
      for (index, configuration) in storage.proxyConfigurations.enumerated() {
        settings.rules.append(try configuration.rule(index))
      }
      return settings
    }
    if let dictionary = storage.connectionProxyDictionary { return try settings(dictionary) }
    // In a broken environment the session fails visibly instead of bypassing the proxy.
    return try ProxySettings(environment: environment(of: storage))
  }

  /// The environment variables that name the proxies of a session without a dictionary.
  static func environment(of storage: URLSessionConfiguration.Storage) -> [String: String] {
    storage.proxyEnvironment
      ?? EnvironmentVariable.all.filter { ProxySettings.variables.contains($0.key) && !$0.value.isEmpty }
  }

  static func settings(_ dictionary: [AnyHashable: Any]) throws -> ProxySettings {
    var settings = ProxySettings()
    settings.http = try proxy(.http, "HTTP", in: dictionary)
    settings.https = try proxy(.http, "HTTPS", in: dictionary)
    settings.all = try proxy(.socks5h, "SOCKS", in: dictionary)
    let list = dictionary["ExceptionsList"] as? [String] ?? []
    settings.exceptions = ProxyExceptions(
      list.map { $0.hasPrefix("*.") ? String($0.dropFirst()) : $0 }.joined(separator: ","))
    return settings
  }

  private static func proxy(
    _ kind: Proxy.Kind, _ prefix: String, in dictionary: [AnyHashable: Any]
  ) throws -> Proxy? {
    guard isOn(dictionary[prefix + "Enable"]), let entry = dictionary[prefix + "Proxy"] else { return nil }
    guard let text = entry as? String else { throw Proxy.Invalid.hostInvalid }
    let (named, host) = try Proxy.splitKind(Array(text.utf8)[...])
    let port = try dictionary[prefix + "Port"].map(port)
    let user = (dictionary[prefix + "User"] ?? dictionary["kCFProxyUsernameKey"]) as? String
    let password = (dictionary[prefix + "Password"] ?? dictionary["kCFProxyPasswordKey"]) as? String
    let credentials = user.map { UserInfo(user: Array($0.utf8), password: Array((password ?? "").utf8)) }
    return try Proxy(
      named ?? kind, host: String(decoding: host, as: UTF8.self), port: port, credentials: credentials)
  }

  /// Reads a port from a number of any type or from decimal digits. Any other value is an error, because a proxy at the
  /// standard port would be a different proxy.
  private static func port(_ value: Any) throws -> UInt16 {
    let port: UInt16? =
      switch value {
      // Foundation bridges `true` to a number.
      case _ where type(of: value) == Bool.self: nil
      case let text as String: text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? UInt16(text) : nil
      case let number as NSNumber: UInt16(exactly: number.doubleValue)
      default: nil
      }
    guard let port else { throw Proxy.Invalid.portInvalid }
    return port
  }

  private static func isOn(_ value: Any?) -> Bool { (value as? Bool) ?? number(value).map { $0 != 0 } ?? false }

  private static func number(_ value: Any?) -> Int? {
    (value as? Int) ?? (value as? NSNumber)?.intValue ?? (value as? String).flatMap { Int($0) }
  }
}
