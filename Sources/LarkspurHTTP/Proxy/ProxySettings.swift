/// Which proxy leads to which server.
public struct ProxySettings: Hashable, Sendable {
  /// For `http` and for `https` URLs, and for those of the two that have none of their own.
  public var http: Proxy?
  public var https: Proxy?
  public var all: Proxy?
  public var exceptions = ProxyExceptions()

  public init() {}

  /// Nil: the server is reached directly.
  public func proxy(toHost host: String, port: UInt16, isSecure: Bool) -> Proxy? {
    guard let proxy = (isSecure ? https : http) ?? all, !exceptions.contains(host: host, port: port) else { return nil }
    return proxy
  }

  // MARK: - Environment

  /// A variable whose value does not name a proxy.
  public struct InvalidVariable: Error, Hashable, Sendable, CustomStringConvertible {
    public var name: String
    public var error: Proxy.Invalid

    public var description: String { "\(name): \(error)" }
  }

  /// The variables that are read. Where there are two spellings the first one counts. There is no `HTTP_PROXY`: a server
  /// that runs programs by CGI sets it to what the client sends as `Proxy:` (RFC 3875 4.1.18).
  private static let httpVariables = ["http_proxy"]
  private static let httpsVariables = ["https_proxy", "HTTPS_PROXY"]
  private static let allVariables = ["all_proxy", "ALL_PROXY"]
  private static let exceptionVariables = ["no_proxy", "NO_PROXY"]
  public static let variables = httpVariables + httpsVariables + allVariables + exceptionVariables

  /// Reads the environment by curl's rules. An empty variable is as good as none.
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
