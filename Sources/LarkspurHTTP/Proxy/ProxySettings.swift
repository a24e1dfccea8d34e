/// The proxies for servers, by the scheme of the URL.
public struct ProxySettings: Hashable, Sendable {
  /// The proxy for `http` URLs, or `nil` to use `all`.
  public var http: Proxy?
  /// The proxy for `https` URLs, or `nil` to use `all`.
  public var https: Proxy?
  /// The proxy for URLs of the schemes without a specific proxy.
  public var all: Proxy?
  /// The servers that are reached without a proxy.
  public var exceptions = ProxyExceptions()
  /// Rules in place of all of the above, the first of which that covers a host counts. Empty for none.
  public var rules: [ProxyRule] = []

  /// Creates settings without proxies: each server is reached directly.
  public init() {}

  /// Returns the rule for a server, or `nil` if the server is reached directly.
  public func rule(toHost host: String, port: UInt16, isSecure: Bool) -> ProxyRule? {
    guard rules.isEmpty else { return rules.first { $0.covers(host: host, port: port) } }
    guard let proxy = (isSecure ? https : http) ?? all, !exceptions.contains(host: host, port: port) else { return nil }
    return ProxyRule(proxy)
  }

  // MARK: - Environment

  /// A variable whose value does not name a proxy.
  public struct InvalidVariable: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the environment variable.
    public var name: String
    /// The reason why its value names no proxy.
    public var error: Proxy.Invalid

    public var description: String { "\(name): \(error)" }
  }

  /// The environment variable for `http` URLs. `HTTP_PROXY` is not read: a server that runs a program by CGI sets this
  /// variable to the client's `Proxy` field (RFC 3875 4.1.18). Where a list has two spellings, the first one that is
  /// not empty counts.
  private static let httpVariables = ["http_proxy"]
  private static let httpsVariables = ["https_proxy", "HTTPS_PROXY"]
  private static let allVariables = ["all_proxy", "ALL_PROXY"]
  private static let exceptionVariables = ["no_proxy", "NO_PROXY"]
  /// Names of all environment variables that are read.
  public static let variables = httpVariables + httpsVariables + allVariables + exceptionVariables

  /// Reads the environment by curl's rules. An empty variable counts as missing.
  public init(environment: [String: String]) throws(InvalidVariable) {
    http = try Self.proxy(of: Self.httpVariables, in: environment)
    https = try Self.proxy(of: Self.httpsVariables, in: environment)
    all = try Self.proxy(of: Self.allVariables, in: environment)
    let list = Self.exceptionVariables.compactMap { environment[$0] }.first { !$0.isEmpty }
    exceptions = ProxyExceptions(list ?? "")
  }

  private static func proxy(
    of names: [String], in environment: [String: String]
  ) throws(InvalidVariable) -> Proxy? {
    for name in names {
      guard let value = environment[name], !value.isEmpty else { continue }
      do throws(Proxy.Invalid) {
        return try Proxy(value)
      } catch {
        throw InvalidVariable(name: name, error: error)
      }
    }
    return nil
  }
}
