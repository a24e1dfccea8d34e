import Foundation
import LarkspurHTTP

/// A session's proxies: those of its dictionary, or else the environment's.
enum SessionProxies {
  static func settings(_ dictionary: [AnyHashable: Any]?) throws -> ProxySettings {
    guard let dictionary else {
      // A session of a program that runs in a broken environment should fail loudly, not go around the proxy.
      return try ProxySettings(environment: ProcessInfo.processInfo.environment)
    }
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
    guard isOn(dictionary[prefix + "Enable"]), let host = dictionary[prefix + "Proxy"] as? String else { return nil }
    let port = number(dictionary[prefix + "Port"]).flatMap(UInt16.init(exactly:))
    let user = (dictionary[prefix + "User"] ?? dictionary["kCFProxyUsernameKey"]) as? String
    let password = (dictionary[prefix + "Password"] ?? dictionary["kCFProxyPasswordKey"]) as? String
    let credentials = user.map { Proxy.Credentials(user: Array($0.utf8), password: Array((password ?? "").utf8)) }
    return try Proxy(kind, host: host, port: port, credentials: credentials)
  }

  private static func isOn(_ value: Any?) -> Bool { (value as? Bool) ?? number(value).map { $0 != 0 } ?? false }

  private static func number(_ value: Any?) -> Int? {
    (value as? Int) ?? (value as? NSNumber)?.intValue ?? (value as? String).flatMap { Int($0) }
  }
}
