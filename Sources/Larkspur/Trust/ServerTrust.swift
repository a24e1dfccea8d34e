import Foundation
import LarkspurTLS
import Synchronization

/// A server's certificates and the result of their verification. Safe to use from any thread.
///
/// A delegate finds it in the protection space of a challenge of the method ``NSURLAuthenticationMethodServerTrust``.
/// By then the chain has been verified against the session's roots for the URL's host: ``isTrusted`` is the result, and
/// default handling follows it. To trust a server nevertheless, answer with ``URLCredential/init(trust:)``.
///
/// Darwin's name is ``SecTrust``. The functions named `SecTrust...` take it.
public final class ServerTrust: Sendable {
  /// The result of a verification.
  public struct TrustResult: Error, Hashable, Sendable {
    /// OpenSSL's error number, `X509_V_...`, or 1001 for a key that is too large. 0 if the chain is good.
    public let code: Int
    /// The position in the chain of the certificate with the problem. 0 is the server's own certificate.
    public let depth: Int
    /// OpenSSL's text for ``code``, or, if a root is missing, the name of the system's file of roots that cannot be
    /// used.
    public let message: String

    /// Whether the chain is good only because the program ignores its failures.
    var hasExceptions = false

    /// Whether the chain is good.
    public var isTrusted: Bool { code == 0 }
  }

  /// The settings of ``SecTrustEvaluateWithError(_:_:)``.
  struct Settings: Sendable {
    /// The anchors, or `nil` for the session's roots.
    var anchors: [TLSCertificate]?
    /// Whether the session's roots count in addition to `anchors`.
    var keepsRoots = false
    /// Whether only `anchors` count, even if there are none.
    var hasAnchorsOnly = false
    var date: Date?
    /// The rules, all of which apply. With an empty array no chain is good. With `nil` the certificate has to be for
    /// the connected host.
    var policies: [SecPolicy]?
    /// The failures to ignore, or `nil` for none.
    var exceptions: TrustExceptions?

    /// Returns the hosts that the certificate has to be for, one after the other; `nil` stands for any host.
    func hosts(ofServer server: String) -> [String?] {
      guard let policies else { return [server] }
      if policies.isEmpty { return [] }
      let hosts = policies.compactMap(\.host)
      return hosts.isEmpty ? [nil] : hosts
    }

    /// Adds a rule to those that are set. If no chain satisfies the rules so far, no chain satisfies one more.
    mutating func add(_ policy: SecPolicy) {
      if policies?.isEmpty != true { policies = (policies ?? []) + [policy] }
    }
  }

  private struct State {
    var inner: LarkspurTLS.Trust
    /// The result of the last verification, or `nil` if there was none with these settings.
    var result: TrustResult?
    var settings = Settings()
    /// The number of changes to the settings.
    var changes = 0
    /// See `SecTrustSetNetworkFetchAllowed(_:_:)`.
    var allowsNetworkFetch = false
  }

  private let state: Mutex<State>
  /// The trust as the handshake or the initializer made it.
  let original: LarkspurTLS.Trust

  convenience init(_ inner: LarkspurTLS.Trust) { self.init(inner, Settings(), isEvaluated: true) }

  private init(_ inner: LarkspurTLS.Trust, _ settings: Settings, isEvaluated: Bool) {
    original = inner
    let result = isEvaluated ? TrustResult(inner.result) : nil
    state = Mutex(State(inner: inner, result: result, settings: settings))
  }

  /// Creates a trust for a chain that does not come from a handshake, to be evaluated by policies and the system's
  /// roots. The chain is not trusted until it is evaluated. Its host is the first one that the policies name, or
  /// `certificates.invalid` (RFC 6761 6.4).
  convenience init(_ chain: [TLSCertificate], policies: [SecPolicy]) throws(Failure) {
    let named = policies.compactMap(\.host).compactMap(ServerName.init).first
    guard let server = named ?? ServerName(host: "certificates.invalid") else { throw .hostInvalid }
    var settings = Settings()
    settings.policies = policies
    do throws(TLSError) {
      let now = Self.seconds(Date())
      let inner = try LarkspurTLS.Trust.verifying(chain.map(\.inner), for: server, roots: .system, date: now)
      self.init(inner, settings, isEvaluated: false)
    } catch {
      throw .anchorsUnusable
    }
  }

  /// Verifies a chain that does not come from a handshake, but from a file or a test. With the system's roots this
  /// takes up to 40 ms on the calling thread, because it reads them.
  ///
  /// - Parameters:
  ///   - host: The host that the certificate has to be for, as in a URL.
  ///   - chain: The certificates, the server's own first.
  ///   - roots: The trusted roots.
  ///   - date: The time at which the chain has to be valid.
  /// - Throws: ``Failure``.
  public convenience init(
    host: String, chain: [TLSCertificate], roots: TLSTrustSettings.Roots = .system, date: Date = Date()
  ) throws(Failure) {
    guard let name = ServerName(host: host) else { throw .hostInvalid }
    do throws(TLSError) {
      self.init(
        try LarkspurTLS.Trust.verifying(
          chain.map(\.inner), for: name, roots: roots.inner, date: Self.seconds(date)))
    } catch {
      throw .anchorsUnusable
    }
  }

  private var inner: LarkspurTLS.Trust { state.withLock { $0.inner } }

  /// The connected host: a name in lower case, or an address.
  public var host: String { original.server.text }

  /// The chain as the server sent it: its own certificate first, the others in the order of arrival.
  public var sentChain: [TLSCertificate] { original.sent.map(TLSCertificate.init) }

  /// The chain that the last verification built, from the server's certificate to the root, as far as it got.
  public var verifiedChain: [TLSCertificate] { inner.verified.map(TLSCertificate.init) }

  /// The result of the last verification, or a failure if a setting has been changed since.
  public var result: TrustResult { currentResult ?? .notEvaluated }

  /// Whether the last verification found a good chain, and no setting has been changed since.
  public var isTrusted: Bool { result.isTrusted }

  /// Verifies this chain with other inputs. The object does not change.
  ///
  /// Settings that the program has made count: those of `SecTrustSetAnchorCertificates`, `SecTrustSetVerifyDate`,
  /// `SecTrustSetPolicies` and `SecTrustSetExceptions`. The call takes about 1 ms on the calling thread, and uses
  /// neither files nor the network.
  ///
  /// - Parameters:
  ///   - host: The host that the certificate has to be for, as in a URL, in addition to the hosts of policies that are
  ///     set. `nil` for no host.
  ///   - anchors: The certificates at which a chain has to end, in place of those that are set. As on Darwin they may
  ///     be roots, intermediates or the server's own certificate. With `nil`, the anchors that are set count, or else
  ///     the session's roots. The session's revocation lists count in either case.
  ///   - date: The time at which the chain has to be valid. With `nil`, the date that is set counts, or else the current
  ///     time.
  /// - Returns: The result, with the chain that was built.
  /// - Throws: ``Failure``.
  public func evaluate(
    host: String?, anchors: [TLSCertificate]? = nil, date: Date? = nil
  ) throws(Failure) -> (result: TrustResult, chain: [TLSCertificate]) {
    var settings = settings
    settings.add(SecPolicyCreateSSL(true, host))
    if let anchors { (settings.anchors, settings.keepsRoots) = (anchors, false) }
    if let date { settings.date = date }
    let (result, trust) = try evaluated(by: settings)
    // Of a chain with failures that are ignored, only the server's own certificate is proved.
    let chain = result.hasExceptions ? original.sent.prefix(1) : trust?.verified[...] ?? []
    return (result, chain.map(TLSCertificate.init))
  }

  /// The reason why a verification could not start.
  public enum Failure: Error, Hashable, Sendable {
    /// The host is neither an ASCII name nor an address.
    case hostInvalid
    /// OpenSSL does not accept the anchors or roots.
    case anchorsUnusable
  }

  private func evaluated(host: String?, anchors: [TLSCertificate]?, date: Date) throws(Failure) -> LarkspurTLS.Trust {
    var name: ServerName?
    if let host {
      name = ServerName(host: host)
      if name == nil { throw .hostInvalid }
    }
    do throws(TLSError) {
      return try original.evaluate(host: name, anchors: anchors?.map(\.inner), date: Self.seconds(date))
    } catch {
      throw .anchorsUnusable
    }
  }

  /// Limit the date: a date that no certificate can contain is as good as the limit.
  private static func seconds(_ date: Date) -> Int64 {
    let seconds = date.timeIntervalSince1970
    return seconds.isNaN ? 0 : Int64(max(-1e11, min(1e12, seconds)))
  }

  // MARK: - For Darwin's functions

  /// The value of `SecTrustSetNetworkFetchAllowed(_:_:)`, which has no effect.
  var allowsNetworkFetch: Bool {
    get { state.withLock { $0.allowsNetworkFetch } }
    set { state.withLock { $0.allowsNetworkFetch = newValue } }
  }

  /// Changes the settings. The result of the last verification is dropped.
  func change(_ body: (inout Settings) -> Void) {
    state.withLock { state in
      body(&state.settings)
      state.changes += 1
      state.result = nil
    }
  }

  /// The result of the last verification, or `nil` if a setting has been changed since.
  var currentResult: TrustResult? { state.withLock { $0.result } }

  /// Verifies with the current settings, and stores the result unless they change meanwhile.
  func reevaluate() -> TrustResult {
    let (settings, changes) = state.withLock { ($0.settings, $0.changes) }
    let (result, inner): (TrustResult, LarkspurTLS.Trust?)
    do throws(Failure) {
      (result, inner) = try evaluated(by: settings)
    } catch {
      (result, inner) = (.failure("\(error)"), nil)
    }
    state.withLock { state in
      guard state.changes == changes else { return }
      if let inner { state.inner = inner }
      state.result = result
    }
    return result
  }

  // MARK: - Decisions

  /// Whether the decision to trust this chain holds for another trust's connection: the server has the key of this
  /// chain's first certificate, and this trust is for the connected host or for any host.
  func covers(_ connection: ServerTrust) -> Bool {
    if self === connection { return true }
    guard let own = original.sent.first, let leaf = connection.original.sent.first,
      own.publicKeyInfo == leaf.publicKeyInfo
    else { return false }
    return settings.hosts(ofServer: host).contains { host in
      host.map { ServerName(host: $0)?.text == connection.host } ?? true
    }
  }

  /// The chain that the last evaluation found good, or no certificates if there is none, or a setting has been changed
  /// since.
  var goodChain: [LarkspurTLS.Certificate] {
    state.withLock { $0.result?.isTrusted == true && $0.inner.result.isTrusted ? $0.inner.verified : [] }
  }

  // MARK: - Evaluations

  /// Verifies with these settings, and ignores failures that are all exceptions.
  private func evaluated(by settings: Settings) throws(Failure) -> (TrustResult, LarkspurTLS.Trust?) {
    let (result, trust) = try evaluatedStrictly(by: settings)
    guard !result.isTrusted, let ignored = settings.exceptions?.failures,
      let failures = failures(by: settings)?.failures, failures.isSubset(of: ignored)
    else { return (result, trust) }
    return (TrustResult(code: 0, depth: 0, message: "ignored: \(result)", hasExceptions: true), trust)
  }

  /// Maximum number of failures of one chain that can be ignored.
  private static let failuresMax = 8

  /// Returns the failures that evaluations find, each of which ignores those of the earlier ones.
  ///
  /// - Returns: `nil` if the chain has a failure that cannot be ignored.
  func failures(by settings: Settings) -> TrustExceptions? {
    guard let leaf = sentChain.first else { return nil }
    var (settings, found) = (settings, TrustExceptions(certificate: leaf.sha256, failures: []))
    for _ in 0..<Self.failuresMax {
      guard let result = try? evaluatedStrictly(by: settings).0 else { return nil }
      if result.isTrusted { return found }
      found.failures.insert(TrustExceptions.Failure(code: result.code, depth: result.depth))
      guard settings.ignore(result, of: leaf) else { return nil }
    }
    return nil
  }

  /// The current settings.
  var settings: Settings { state.withLock { $0.settings } }

  private func evaluatedStrictly(by settings: Settings) throws(Failure) -> (TrustResult, LarkspurTLS.Trust?) {
    if settings.policies?.isEmpty == true { return (.failure("no policy is set that is of use"), nil) }
    let date = settings.date ?? Date()
    let anchors = settings.anchors ?? (settings.hasAnchorsOnly ? [] : nil)
    var latest: LarkspurTLS.Trust?
    for host in settings.hosts(ofServer: self.host) {
      var trust = try evaluated(host: host, anchors: anchors, date: date)
      if settings.anchors != nil, settings.keepsRoots, !trust.result.isTrusted {
        trust = try evaluated(host: host, anchors: nil, date: date)
      }
      latest = trust
      if !trust.result.isTrusted { return (TrustResult(trust.result), trust) }
    }
    let hasLists = original.hasRevocationLists
    if let policies = settings.policies, policies.contains(where: { $0.lacksAnswer(hasLists: hasLists) }) {
      let message = "there is no positive answer about the chain's revocation"
      return (TrustResult(code: TrustResult.noRevocationList, depth: 0, message: message), latest)
    }
    return (latest.map { TrustResult($0.result) } ?? .failure("nothing was verified"), latest)
  }
}

extension ServerTrust.TrustResult: CustomStringConvertible, LocalizedError {
  init(_ inner: VerificationResult) {
    self.init(code: Int(inner.code), depth: inner.depth, message: inner.message)
  }

  /// OpenSSL's X509_V_ERR_UNSPECIFIED.
  static let unspecified = 1
  /// OpenSSL's X509_V_ERR_UNABLE_TO_GET_CRL.
  static let noRevocationList = 3

  static let notEvaluated = failure("the chain has not been evaluated with these settings")

  static func failure(_ message: String) -> Self { Self(code: unspecified, depth: 0, message: message) }

  /// A human-readable description.
  public var description: String { message + (depth > 0 ? ", issuer \(depth)" : "") }

  /// A human-readable description.
  public var errorDescription: String? { description }
}

/// Darwin's name for ``ServerTrust``.
public typealias SecTrust = ServerTrust
