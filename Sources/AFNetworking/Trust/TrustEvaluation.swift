import Foundation
import Larkspur

/// One evaluation of a server's chain with a policy's settings.
///
/// The results are those of AFNetworking, but pins are checked more strictly. AFNetworking compares pins with the
/// chain that the system has built, trusted or not. OpenSSL stops at the first error, and leaves a chain that it has
/// built by names alone; anyone can put any name into a certificate. So a pin counts only in a chain that has been
/// verified: up to the trust's own anchors or the session's roots, or up to a pinned certificate.
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
    // Anyone can put any name into a certificate: without a pin, the name proves nothing.
    if domain != nil, settings.allowsInvalid, settings.validatesName, hasNoPins { return false }
    switch settings.mode {
    case .none: return settings.allowsInvalid || chain() != nil
    case .certificate: return hasPinnedCertificate && isWholeIfRequired(pinned.contains)
    case .publicKey:
      let hasKey = settings.allowsInvalid ? hasPinnedKeyThoughInvalid : chain()?.contains(where: isKeyPinned) == true
      return hasKey && isWholeIfRequired(isKeyPinned)
    }
  }

  /// Whether the whole chain is pinned, if the policy requires this. Checks the verified chain up to its root, or, if
  /// there is none, the chain as sent.
  private func isWholeIfRequired(_ isPinned: (TLSCertificate) -> Bool) -> Bool {
    !settings.validatesChain || (chain() ?? trust.sentChain).allSatisfy(isPinned)
  }

  private var hasNoPins: Bool {
    switch settings.mode {
    case .none: true
    case .certificate: pinned.isEmpty
    case .publicKey: pinned.isEmpty && settings.keyPins.isEmpty
    }
  }

  /// Verifies the chain with the trust's own anchors, policies and date, as far as the caller has set them.
  ///
  /// - Parameters:
  ///   - anchors: The certificates at which the chain must end, in place of the trust's anchors or the session's roots.
  ///   - date: The time at which the chain must be valid, in place of the trust's date or the current time.
  /// - Returns: The chain, or `nil` if it is not valid.
  private func chain(upTo anchors: [TLSCertificate]? = nil, date: Date? = nil) -> [TLSCertificate]? {
    let host = settings.validatesName ? domain : nil
    guard let (result, chain) = try? trust.evaluate(host: host, anchors: anchors, date: date) else { return nil }
    return result.isTrusted ? chain : nil
  }

  /// Whether the chain is valid up to a pinned certificate. Invalid certificates do not change this. If they are not
  /// allowed, the chain must be valid without the pins, too.
  private var hasPinnedCertificate: Bool {
    guard !pinned.isEmpty else { return false }
    if !settings.allowsInvalid {
      guard let chain = chain() else { return false }
      if chain.contains(where: pinned.contains) { return true }
    }
    return chain(upTo: pinned)?.contains(where: pinned.contains) == true
  }

  /// Whether the server's own key is pinned, or the key of a verified issuer. The handshake has proved that the server
  /// has the key of this certificate; an issuer counts only if the chain up to it is valid.
  private var hasPinnedKeyThoughInvalid: Bool {
    guard let own = trust.sentChain.first else { return false }
    if isKeyPinned(own) { return true }
    let issuers = (pinned + trust.sentChain.dropFirst()).filter(isKeyPinned)
    guard !issuers.isEmpty else { return false }
    // Expired certificates are allowed, so the chain is also checked for a moment at which the server's certificate was
    // valid.
    let dates = [nil, own.notValidAfter.addingTimeInterval(-1)]
    return dates.contains { chain(upTo: issuers, date: $0)?.contains(where: isKeyPinned) == true }
  }

  private func isKeyPinned(_ certificate: TLSCertificate) -> Bool {
    pinnedKeys.contains(certificate.publicKeyInfo) || settings.keyPins.contains(.publicKey(of: certificate))
      || settings.keyPins.contains(.certificate(certificate))
  }
}
