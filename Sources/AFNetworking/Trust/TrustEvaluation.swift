import Foundation
import Larkspur

/// One look at a server's chain, by a policy's settings.
///
/// The answers are AFNetworking's, and the chain is read more strictly. AFNetworking compares pins with the chain that the system
/// has built, trusted or not. OpenSSL stops at the first thing that is wrong: the chain that it leaves then was put together
/// by names alone, and anybody can write a name. So a pin counts only in a chain that has been verified: up to the session's
/// roots, or up to what is pinned.
struct TrustEvaluation {
  private let settings: AFSecurityPolicy.Settings
  private let trust: ServerTrust
  private let domain: String?
  private let pinned: [TLSCertificate]
  private let pinnedKeys: Set<Data>

  init(settings: AFSecurityPolicy.Settings, trust: ServerTrust, domain: String?) {
    self.settings = settings
    self.trust = trust
    self.domain = domain
    pinned = (settings.certificates ?? []).compactMap { TLSCertificate($0) }
    pinnedKeys = Set(pinned.map(\.publicKeyInfo))
  }

  var isTrusted: Bool {
    // Anybody can write a name into a certificate: without a pin it does not say whose it is.
    if domain != nil, settings.allowsInvalid, settings.validatesName, hasNoPins { return false }
    switch settings.mode {
    case .none: return settings.allowsInvalid || chain() != nil
    case .certificate: return hasPinnedCertificate && isWholeIfWanted(pinned.contains)
    case .publicKey:
      let hasKey = settings.allowsInvalid ? hasPinnedKeyThoughInvalid : chain()?.contains(where: isKeyPinned) == true
      return hasKey && isWholeIfWanted(isKeyPinned)
    }
  }

  /// Whether the whole chain is pinned, if it has to be: up to its root, or as it was sent if it leads to none.
  private func isWholeIfWanted(_ isPinned: (TLSCertificate) -> Bool) -> Bool {
    !settings.validatesChain || (chain() ?? trust.sentChain).allSatisfy(isPinned)
  }

  private var hasNoPins: Bool {
    switch settings.mode {
    case .none: true
    case .certificate: pinned.isEmpty
    case .publicKey: pinned.isEmpty && settings.keyPins.isEmpty
    }
  }

  /// The chain up to the session's roots, or to other anchors. Nil: it is not good.
  private func chain(upTo anchors: [TLSCertificate]? = nil, date: Date = Date()) -> [TLSCertificate]? {
    let host = settings.validatesName ? domain : nil
    guard let (result, chain) = try? trust.evaluate(host: host, anchors: anchors, date: date) else { return nil }
    return result.isTrusted ? chain : nil
  }

  /// The chain has to be good up to a pinned certificate, also where invalid certificates are allowed. Where they are not, the
  /// session's roots have to agree.
  private var hasPinnedCertificate: Bool {
    guard !pinned.isEmpty else { return false }
    if !settings.allowsInvalid {
      guard let chain = chain() else { return false }
      if chain.contains(where: pinned.contains) { return true }
    }
    return chain(upTo: pinned)?.contains(where: pinned.contains) == true
  }

  /// The handshake has shown that the server has the key of its own certificate. What stands above that has to have signed it.
  private var hasPinnedKeyThoughInvalid: Bool {
    guard let own = trust.sentChain.first else { return false }
    if isKeyPinned(own) { return true }
    let issuers = (pinned + trust.sentChain.dropFirst()).filter(isKeyPinned)
    guard !issuers.isEmpty else { return false }
    // Expired certificates are allowed: then there was a time when this one was good.
    let dates = [Date(), own.notValidAfter.addingTimeInterval(-1)]
    return dates.contains { chain(upTo: issuers, date: $0)?.contains(where: isKeyPinned) == true }
  }

  private func isKeyPinned(_ certificate: TLSCertificate) -> Bool {
    pinnedKeys.contains(certificate.publicKeyInfo) || settings.keyPins.contains(.publicKey(of: certificate))
      || settings.keyPins.contains(.certificate(certificate))
  }
}
