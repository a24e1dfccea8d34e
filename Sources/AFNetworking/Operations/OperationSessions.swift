import Foundation
import Larkspur
import Synchronization

/// The sessions that load operations' requests.
///
/// Operations with the default settings share one session. A connection that one security policy has trusted must not
/// serve an operation with another policy, and a connection that one credential has authenticated must not serve
/// another credential: operations that differ in these have different sessions, which are kept for later operations
/// with equal settings.
enum OperationSessions {
  /// The settings that the operations of one session share.
  struct Settings {
    fileprivate var usesCredentialStorage: Bool
    fileprivate var credential: URLCredential?
    fileprivate var policy: AFSecurityPolicy
    fileprivate var policySettings: PolicySettings
    /// Whether a block decides about trust: no other operation may use a connection that the block has trusted.
    fileprivate var isForOneLoad: Bool

    init(_ details: AFURLConnectionOperation.Details) {
      usesCredentialStorage = details.usesCredentialStorage
      credential = details.credential
      policy = details.securityPolicy
      policySettings = PolicySettings(details.securityPolicy)
      isForOneLoad = details.challengeBlock != nil
    }

    fileprivate var isOrdinary: Bool {
      usesCredentialStorage && credential == nil && !isForOneLoad && policySettings == .ordinary
        && type(of: policy) == AFSecurityPolicy.self
    }

    /// Two objects of a subclass may decide differently even if their settings are equal.
    fileprivate func isSame(as other: Settings) -> Bool {
      let isSamePolicy =
        policy === other.policy
        || type(of: policy) == AFSecurityPolicy.self && type(of: other.policy) == AFSecurityPolicy.self
      return isSamePolicy && policySettings == other.policySettings && credential == other.credential
        && usesCredentialStorage == other.usesCredentialStorage
    }
  }

  /// The settings of a policy that separate sessions, as they are when a load starts.
  fileprivate struct PolicySettings: Equatable {
    var mode = AFSSLPinningMode.none
    var allowsInvalid = false
    var validatesName = true
    var validatesChain = false
    var certificates: Set<Data> = []
    var keyPins: Set<CertificatePin> = []

    static let ordinary = PolicySettings()

    init() {}

    init(_ policy: AFSecurityPolicy) {
      mode = policy.sslPinningMode
      allowsInvalid = policy.allowInvalidCertificates
      validatesName = policy.validatesDomainName
      validatesChain = policy.validatesCertificateChain
      certificates = policy.pinnedCertificates ?? []
      keyPins = policy.publicKeyPins
    }
  }

  /// A session for one load, or for any number of loads.
  struct Lent {
    var session: URLSession
    var isForOneLoad: Bool
  }

  /// Maximum number of kept sessions with custom settings. The least recently used one is removed first: its tasks run
  /// to their end, and its connections are closed.
  static let keptSessionsMax = 16

  private static let shared = session(with: .default)
  private static let kept = Mutex<[(settings: Settings, session: URLSession)]>([])

  static func session(for settings: Settings) -> Lent {
    if settings.isOrdinary { return Lent(session: shared, isForOneLoad: false) }
    if settings.isForOneLoad { return Lent(session: make(settings), isForOneLoad: true) }
    let (session, old) = kept.withLock { kept -> (URLSession, URLSession?) in
      if let index = kept.firstIndex(where: { $0.settings.isSame(as: settings) }) {
        let entry = kept.remove(at: index)
        kept.append(entry)
        return (entry.session, nil)
      }
      let session = make(settings)
      kept.append((settings, session))
      return (session, kept.count > keptSessionsMax ? kept.removeFirst().session : nil)
    }
    old?.finishTasksAndInvalidate()
    return Lent(session: session, isForOneLoad: false)
  }

  static var keptSessions: Int { kept.withLock { $0.count } }

  private static func make(_ settings: Settings) -> URLSession {
    let configuration = URLSessionConfiguration.default
    if !settings.usesCredentialStorage { configuration.urlCredentialStorage = nil }
    return session(with: configuration)
  }

  private static func session(with configuration: URLSessionConfiguration) -> URLSession {
    URLSession(configuration: configuration, delegate: OperationChallenges(), delegateQueue: nil)
  }
}

/// Passes the challenges of a session's tasks to their operations.
///
/// A connection that a task's own delegate has decided about serves only the tasks of that delegate. A decision of the
/// session's delegate counts for the whole session. All operations of a session decide in the same way, so they share
/// connections.
private final class OperationChallenges: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let load = task.delegate as? OperationLoad else {
      return completionHandler(.cancelAuthenticationChallenge, nil)
    }
    load.answer(challenge, of: task, completionHandler)
  }
}
