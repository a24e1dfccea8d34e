import Foundation
import Larkspur

/// One look at a server's chain, by a policy's settings.
///
/// AFNetworking's answer is kept, and its chain is read more strictly. It compares pins with the chain that the system has built,
/// which on Darwin is one of good signatures even where nobody trusts its root. OpenSSL stops at the first thing that is
/// wrong: the chain that is left over then was put together by names alone, and anybody can write a name. So a pin counts only
/// in a chain that has been verified: from the session's roots, or from the pinned certificates as anchors.
struct TrustEvaluation {
  let settings: AFSecurityPolicy.Settings
  let trust: ServerTrust
  let domain: String?

  private var pinned: Set<Data> { settings.certificates ?? [] }

  /// Whom the certificate has to be for.
  private var host: String? { settings.validatesName ? domain : nil }

  var isTrusted: Bool {
    // A name that any certificate can have written into it says nothing: it takes pins to know whose it is.
    if domain != nil, settings.allowsInvalid, settings.validatesName, settings.mode == .none || hasNoPins {
      return false
    }
    switch settings.mode {
    case .none: return settings.allowsInvalid || chain(host: host) != nil
    case .certificate: return hasPinnedCertificate
    case .publicKey: return hasPinnedKey
    }
  }

  private var hasNoPins: Bool {
    pinned.isEmpty && (settings.mode == .certificate || settings.keyPins.isEmpty)
  }

  /// The chain as it was verified. Nil: it is not good.
  private func chain(host: String?, anchors: [Certificate]? = nil, date: Date = Date()) -> [Certificate]? {
    guard let (result, chain) = try? trust.evaluate(host: host, anchors: anchors, date: date), result.isTrusted else {
      return nil
    }
    return chain
  }

  private var anchors: [Certificate] { pinned.compactMap { Certificate($0) } }

  /// The chain has to be good with the pinned certificates as its anchors, whatever the session's roots say to it; if invalid
  /// certificates are not allowed those have to agree.
  private var hasPinnedCertificate: Bool {
    let standard = settings.allowsInvalid ? nil : chain(host: host)
    guard settings.allowsInvalid || standard != nil, !anchors.isEmpty else { return false }
    let isPinned = { (chain: [Certificate]?) in chain?.contains { pinned.contains($0.der) } == true }
    return isPinned(standard) || isPinned(chain(host: host, anchors: anchors))
  }

  private var hasPinnedKey: Bool {
    guard !settings.allowsInvalid else { return hasPinnedKeyThoughInvalid }
    guard let chain = chain(host: host) else { return false }
    return chain.contains(where: isPinned)
  }

  /// The handshake has shown that the server has the key of its own certificate. What stands above it has to have signed it.
  private var hasPinnedKeyThoughInvalid: Bool {
    guard let leaf = trust.sentChain.first else { return false }
    if isPinned(leaf) { return true }
    let issuers = (anchors + trust.sentChain.dropFirst()).filter(isPinned)
    guard !issuers.isEmpty else { return false }
    // Expired certificates are allowed: there was a time when this one was good.
    return [Date(), leaf.notValidAfter].contains { date in
      chain(host: nil, anchors: issuers, date: date)?.contains(where: isPinned) == true
    }
  }

  private func isPinned(_ certificate: Certificate) -> Bool {
    settings.keyPins.contains(.publicKey(of: certificate)) || settings.keyPins.contains(.certificate(certificate))
      || anchors.contains { $0.publicKeyInfo == certificate.publicKeyInfo }
  }
}
