import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// Makes of the options and the environment the way to a server.
enum ProxySetUp {
  /// Nil: it is reached directly.
  static func route(_ options: GetOptions, to url: RequestURL) throws(CommandFailure) -> ProxyRoute? {
    let settings = try settings(options)
    guard let proxy = settings.proxy(toHost: url.host, port: url.port, isSecure: url.isSecure) else { return nil }
    var route = ProxyRoute(proxy)
    route.userAgent = "larkspur/\(LarkspurCommand.version)"
    if proxy.kind == .https {
      do throws(TLSError) {
        route.security = Security(try TLSContext(TLSConfiguration()))
      } catch {
        throw CommandFailure(ExitStatus(error), "cannot set up TLS with \(proxy): \(error)")
      }
    }
    return route
  }

  private static func settings(_ options: GetOptions) throws(CommandFailure) -> ProxySettings {
    var variables: [String: String] = [:]
    for name in ProxySettings.variables { variables[name] = EnvironmentVariable.value(of: name) }
    // An option takes the place of all the variables that could name a proxy: not even their mistakes count.
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
