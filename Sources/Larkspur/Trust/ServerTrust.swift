import Foundation
import LarkspurTLS
import Synchronization

/// A server's certificates, and what came out when they were verified. For any thread.
///
/// A delegate finds it in the protection space of a challenge of the method ``NSURLAuthenticationMethodServerTrust``. By then
/// the chain has been verified against the session's roots for the host of the URL: ``isTrusted`` says with what result. Default
/// handling goes by it. To trust a server nevertheless, answer with ``URLCredential/init(trust:)``.
///
/// Darwin's name is ``SecTrust``, and the functions named `SecTrust...` work on it.
public final class ServerTrust: Sendable {
  /// What came out when the chain was verified.
  public struct TrustResult: Error, Hashable, Sendable {
    /// OpenSSL's number, `X509_V_...`, or 1001 for a key that is too large. 0: the chain is good.
    public let code: Int
    /// Where in the chain the problem is: 0 is the server's own certificate.
    public let depth: Int
    /// OpenSSL's words for ``code``; or, where a root is missing, which of the system's files of roots cannot be used.
    public let words: String

    /// Whether the chain is good.
    public var isTrusted: Bool { code == 0 }
  }

  /// What ``SecTrustEvaluateWithError(_:_:)`` goes by.
  struct Settings: Sendable {
    /// Nil: those of the session.
    var anchors: [TLSCertificate]?
    /// Whether the session's roots count beside `anchors`.
    var keepsRoots = false
    /// Whether nothing but `anchors` counts, even if there are none.
    var hasAnchorsOnly = false
    var date: Date?
    /// The rules, of which every one counts. With an empty array no chain is good. With `nil` the certificate has to be for
    /// the host that was connected to.
    var policies: [SecPolicy]?

    /// The hosts that the certificate has to be for, one after the other; `nil` stands for any host.
    func hosts(ofServer server: String) -> [String?] {
      guard let policies else { return [server] }
      let hosts = policies.compactMap(\.host)
      return hosts.isEmpty ? [nil] : hosts
    }
  }

  private struct State {
    var inner: LarkspurTLS.Trust
    var result: TrustResult
    var settings = Settings()
    /// Whether `result` is of these settings.
    var isEvaluated: Bool
    /// How often the settings have been changed.
    var changes = 0
  }

  private let state: Mutex<State>
  /// As it was when the server showed it.
  let original: LarkspurTLS.Trust

  convenience init(_ inner: LarkspurTLS.Trust) { self.init(inner, Settings(), isEvaluated: true) }

  private init(_ inner: LarkspurTLS.Trust, _ settings: Settings, isEvaluated: Bool) {
    original = inner
    let result = isEvaluated ? TrustResult(inner.result) : .failure("the chain has not been evaluated")
    state = Mutex(State(inner: inner, result: result, settings: settings, isEvaluated: isEvaluated))
  }

  /// A chain that comes from elsewhere, to be evaluated by policies and the system's roots. Until that has been done it is
  /// not trusted: it is then for the first host that the policies name, or for `certificates.invalid` (RFC 6761 6.4).
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

  /// Verifies a chain that comes from elsewhere: a file, or a test. With the system's roots it takes up to 40 ms, on the calling
  /// thread: they are read.
  ///
  /// - Parameters:
  ///   - host: Whom the certificate has to be for, as it stands in a URL.
  ///   - chain: The server's own certificate first.
  ///   - roots: Whose signatures lead to trust.
  ///   - date: At what time it has to be valid.
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

  /// The host that was connected to: a name in lower case, or an address.
  public var host: String { original.server.text }

  /// The chain as the server sent it: its own certificate first, the others in whatever order they came.
  public var sentChain: [TLSCertificate] { original.sent.map(TLSCertificate.init) }

  /// The chain that was built, from the server's certificate to the root, as far as one was found.
  public var verifiedChain: [TLSCertificate] { inner.verified.map(TLSCertificate.init) }

  /// What the last verification came to.
  public var result: TrustResult { state.withLock { $0.result } }

  /// Whether the last verification came to a good chain.
  public var isTrusted: Bool { result.isTrusted }

  /// Verifies the same chain with other inputs. This object stays as it is.
  ///
  /// It takes about a millisecond, on the calling thread; it reads no file and asks nobody.
  ///
  /// - Parameters:
  ///   - host: Whom the certificate has to be for, as it stands in a URL. Nil: whoever it is for.
  ///   - anchors: Where a chain has to end, and nowhere else. As on Darwin they may be roots, intermediates or the server's
  ///     own certificate. Nil: at the roots of the session. Its revocation lists count either way.
  ///   - date: At what time it has to be valid.
  /// - Returns: What came out, with the chain that was built.
  /// - Throws: ``Failure``.
  public func evaluate(
    host: String?, anchors: [TLSCertificate]? = nil, date: Date = Date()
  ) throws(Failure) -> (result: TrustResult, chain: [TLSCertificate]) {
    let trust = try evaluated(host: host, anchors: anchors, date: date)
    return (TrustResult(trust.result), trust.verified.map(TLSCertificate.init))
  }

  /// Why a verification could not even begin.
  public enum Failure: Error, Hashable, Sendable {
    /// It is neither a name in ASCII nor an address.
    case hostInvalid
    /// OpenSSL does not take them for roots.
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

  /// Dates that no certificate can hold are as good as the ends of time.
  private static func seconds(_ date: Date) -> Int64 {
    let seconds = date.timeIntervalSince1970
    return seconds.isNaN ? 0 : Int64(max(-1e11, min(1e12, seconds)))
  }

  // MARK: - What Darwin's functions do

  /// Changes the settings. What the last verification came to stays, and is of other settings.
  func change(_ body: (inout Settings) -> Void) {
    state.withLock { state in
      body(&state.settings)
      state.changes += 1
      state.isEvaluated = false
    }
  }

  /// What the last verification came to, if no setting has been changed since.
  var currentResult: TrustResult? { state.withLock { $0.isEvaluated ? $0.result : nil } }

  /// Verifies by the settings, and keeps what came out.
  func reevaluate() -> TrustResult {
    let (settings, changes) = state.withLock { ($0.settings, $0.changes) }
    let (result, inner) = evaluated(by: settings)
    state.withLock { state in
      if let inner { state.inner = inner }
      state.result = result
      state.isEvaluated = state.changes == changes
    }
    return result
  }

  private func evaluated(by settings: Settings) -> (TrustResult, LarkspurTLS.Trust?) {
    if settings.policies?.isEmpty == true { return (.failure("no policy is set that is of use"), nil) }
    let date = settings.date ?? Date()
    let anchors = settings.anchors ?? (settings.hasAnchorsOnly ? [] : nil)
    var latest: LarkspurTLS.Trust?
    for host in settings.hosts(ofServer: self.host) {
      do throws(Failure) {
        var trust = try evaluated(host: host, anchors: anchors, date: date)
        if settings.anchors != nil, settings.keepsRoots, !trust.result.isTrusted {
          trust = try evaluated(host: host, anchors: nil, date: date)
        }
        latest = trust
        if !trust.result.isTrusted { return (TrustResult(trust.result), trust) }
      } catch {
        return (.failure("\(error)"), nil)
      }
    }
    let hasLists = original.hasRevocationLists
    if let policies = settings.policies, policies.contains(where: { $0.lacksAnswer(hasLists: hasLists) }) {
      let words = "there is no positive answer about the chain's revocation"
      return (TrustResult(code: TrustResult.noRevocationList, depth: 0, words: words), latest)
    }
    return (latest.map { TrustResult($0.result) } ?? .failure("nothing was verified"), latest)
  }
}

extension ServerTrust.TrustResult: CustomStringConvertible, LocalizedError {
  init(_ inner: VerificationResult) {
    self.init(code: Int(inner.code), depth: inner.depth, words: inner.words)
  }

  /// OpenSSL's X509_V_ERR_UNSPECIFIED.
  static let unspecified = 1
  /// OpenSSL's X509_V_ERR_UNABLE_TO_GET_CRL.
  static let noRevocationList = 3

  static func failure(_ words: String) -> Self { Self(code: unspecified, depth: 0, words: words) }

  /// For people to read.
  public var description: String { words + (depth > 0 ? ", issuer \(depth)" : "") }

  /// For people to read.
  public var errorDescription: String? { description }
}

/// Darwin's name for ``ServerTrust``.
public typealias SecTrust = ServerTrust
