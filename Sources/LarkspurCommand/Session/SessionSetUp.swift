import Foundation
import Larkspur
import LarkspurConsole
import LarkspurIO

/// The options that concern the session rather than one request.
struct SessionSetUp: Sendable {
  let options: GetOptions
  private let trust: TLSTrustSettings
  private let proxies: [String: any Sendable]?
  /// The user and the password for Digest.
  let credential: URLCredential?
  /// The cookies, if an option asks to keep them.
  let jar: CookieFile?
  /// Whether a connection may need TLS.
  let usesTLS: Bool

  init(_ options: GetOptions, for target: RequestURL) throws(CommandFailure) {
    self.options = options
    jar = options.session.cookieJar.isInUse ? try CookieFile(options.session.cookieJar) : nil
    let usesTLSProxy = try ProxySetUp.usesTLS(options, to: target)
    proxies = try ProxySetUp.dictionary(options)
    credential = try Self.credential(options, target)
    // Files that no connection needs are not read.
    usesTLS = target.isSecure || options.session.followsRedirects || usesTLSProxy
    trust = usesTLS ? try Self.trust(options.tls, target) : TLSTrustSettings()
  }

  /// - Returns: User and password of a URL, or `nil` if it has none, or if an option gives others.
  func credentials(in url: URL) -> RequestURL.Credentials? {
    options.givesCredentials ? nil : (try? RequestURL(url.absoluteString))?.credentials
  }

  /// Adds the cookies of files to those of the command line, beside which a session would send none.
  func addCookies(to request: inout URLRequest) {
    guard !options.session.cookies.isEmpty, let given = request.value(forHTTPHeaderField: "Cookie"),
      let url = request.url, let cookies = jar?.storage.cookies(for: url),
      let stored = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
    else { return }
    request.setValue("\(stored); \(given)", forHTTPHeaderField: "Cookie")
  }

  /// The configuration of the session, which stores nothing unless an option asks for it.
  var configuration: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    configuration.httpCookieStorage = jar?.storage
    configuration.httpShouldSetCookies = jar != nil
    configuration.timeoutIntervalForRequest = .infinity
    configuration.timeoutIntervalForResource = options.maxTime.map(Format.seconds) ?? .infinity
    configuration.connectionProxyDictionary = proxies
    configuration.tlsMinimumSupportedProtocolVersion = options.tls.minimumIsTLS13 ? .TLSv13 : .TLSv12
    configuration.tlsMaximumSupportedProtocolVersion = options.tls.maximumIsTLS12 ? .TLSv12 : .TLSv13
    configuration.tlsTrustSettings = trust
    configuration.addressFamily = options.addressFamily
    configuration.hostOverrides = options.hostOverrides
    configuration.timeouts = options.timeouts
    configuration.localEndpoint = options.localEndpoint
    configuration.rateLimits.bytesPerSecond = options.session.bytesPerSecondMax
    return configuration
  }

  private static func credential(
    _ options: GetOptions, _ target: RequestURL
  ) throws(CommandFailure) -> URLCredential? {
    guard options.session.usesDigest else { return nil }
    guard let own = options.session.credentials ?? target.credentials else {
      throw CommandFailure(.usage, "--digest needs --user, or a user and a password in the URL")
    }
    return URLCredential(own)
  }

  // MARK: - TLS

  static func trust(_ options: TLSOptions, _ target: RequestURL) throws(CommandFailure) -> TLSTrustSettings {
    var trust = TLSTrustSettings()
    trust.dangerouslyAllowsAnyCertificate = options.isInsecure
    trust.dangerouslyAllowsLegacyKeyExchange = options.allowsLegacyKeyExchange
    if options.isInsecure, target.isSecure {
      Console.complain("warning: --insecure: the server's certificate is not verified; anybody could be answering")
    }
    if let path = options.roots {
      guard let roots = TLSCertificate.read(try read(path, .rootsUnreadable)) else {
        throw CommandFailure(.rootsUnreadable, "\(path) holds no certificate that could be read")
      }
      trust.roots = .only(roots)
    }
    if !options.pins.isEmpty, target.isSecure {
      let pins = options.pins.compactMap { CertificatePin("\($0)") }
      guard let host = PinnedHost(target.host, pins: Set(pins)) else {
        throw CommandFailure(.malformedURL, "\(target.host.debugDescription) is no name that could have pins")
      }
      trust.pins = [host]
    }
    trust.identity = try identity(options)
    return trust
  }

  private static func identity(_ options: TLSOptions) throws(CommandFailure) -> ClientIdentity? {
    guard let path = options.certificate else { return nil }
    var contents = [try read(path, .clientCertificateProblem)]
    if let key = options.key { contents.append(try read(key, .clientCertificateProblem)) }
    do throws(ClientIdentity.Failure) {
      return try ClientIdentity(contents: contents, password: options.password)
    } catch {
      throw CommandFailure(.clientCertificateProblem, "\(path): \(error)")
    }
  }

  private static func read(_ path: String, _ status: ExitStatus) throws(CommandFailure) -> Foundation.Data {
    do throws(Errno) {
      return Foundation.Data(try OpenFile(reading: path).readToEnd())
    } catch {
      throw CommandFailure(status, "could not read \(path): \(error)")
    }
  }
}
