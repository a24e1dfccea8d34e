import LarkspurConsole
import LarkspurHTTP
import LarkspurIO

/// Chooses the proxy of a request from the options and the environment.
enum ProxySetUp {
  /// Returns whether the way to the server leads through a proxy that speaks TLS, and warns if the proxy's certificate is
  /// not verified.
  static func usesTLS(_ options: GetOptions, to url: RequestURL) throws(CommandFailure) -> Bool {
    guard try proxy(options, to: url)?.kind == .https else { return false }
    if options.tls.isInsecure {
      Console.complain("warning: --insecure: the proxy's certificate is not verified; anybody could be answering")
    }
    return true
  }

  /// - Returns: The proxy, or `nil` if the server is reached directly.
  static func proxy(_ options: GetOptions, to url: RequestURL) throws(CommandFailure) -> Proxy? {
    try settings(options).rule(toHost: url.host, port: url.port, isSecure: url.isSecure)?.proxy
  }

  /// Returns the proxies for a session, under CFNetwork's keys.
  ///
  /// - Returns: The dictionary, or `nil` if no option concerns proxies: then the session reads the environment itself.
  static func dictionary(_ options: GetOptions) throws(CommandFailure) -> [String: any Sendable]? {
    guard options.proxy != nil || options.proxyExceptions != nil else { return nil }
    let settings = try settings(options)
    var dictionary: [String: any Sendable] = [:]
    let list =
      options.proxyExceptions ?? EnvironmentVariable.value(of: "no_proxy") ?? EnvironmentVariable.value(of: "NO_PROXY")
    dictionary["ExceptionsList"] = list?.split { $0 == "," || $0 == " " }.map(String.init)
    for (key, proxy) in [("HTTP", settings.http), ("HTTPS", settings.https), ("SOCKS", settings.all)] {
      guard let proxy else { continue }
      dictionary[key + "Enable"] = true
      dictionary[key + "Proxy"] = "\(proxy.kind.rawValue)://\(proxy.host)"
      dictionary[key + "Port"] = Int(proxy.port)
      guard let credentials = proxy.credentials else { continue }
      dictionary[key + "User"] = String(decoding: credentials.user, as: UTF8.self)
      dictionary[key + "Password"] = String(decoding: credentials.password, as: UTF8.self)
    }
    return dictionary
  }

  private static func settings(_ options: GetOptions) throws(CommandFailure) -> ProxySettings {
    var variables: [String: String] = [:]
    for name in ProxySettings.variables { variables[name] = EnvironmentVariable.value(of: name) }
    // The option replaces all variables that name a proxy, so that errors in them do not matter either.
    if options.proxy != nil { variables = variables.filter { $0.key.lowercased() == "no_proxy" } }
    var settings: ProxySettings
    do throws(ProxySettings.InvalidVariable) {
      settings = try ProxySettings(environment: variables)
    } catch {
      throw CommandFailure(.proxyUnresolved, "\(error)")
    }
    if let text = options.proxy, !text.isEmpty {
      do throws(Proxy.Invalid) {
        settings.all = try Proxy(text)
      } catch {
        throw CommandFailure(.proxyUnresolved, "--proxy: \(error)")
      }
    }
    if let list = options.proxyExceptions { settings.exceptions = ProxyExceptions(list) }
    return settings
  }
}
