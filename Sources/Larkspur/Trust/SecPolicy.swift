import Foundation

/// A rule that a chain is evaluated by. Immutable, and for any thread. See `SecTrustSetPolicies(_:_:)`.
public struct SecPolicy: Hashable, Sendable {
  enum Rule: Hashable, Sendable {
    /// RFC 5280's rules for a server's chain, and nothing besides.
    case basic
    /// The certificate has to be for this host.
    case host(String)
    /// `kSecRevocation...`.
    case revocation(CFOptionFlags)
  }

  let rule: Rule

  /// The host that the certificate has to be for, or `nil` if the rule names none.
  var host: String? { if case .host(let name) = rule { name } else { nil } }

  /// Whether the rule demands a positive answer that Larkspur cannot give. A list that counts has already been looked at,
  /// of each issuer, when a chain is found to be good.
  func lacksAnswer(hasLists: Bool) -> Bool {
    guard case .revocation(let flags) = rule, flags & kSecRevocationRequirePositiveResponse != 0 else { return false }
    return !hasLists || flags & kSecRevocationCRLMethod == 0
  }
}

/// Creates the rules for a TLS server.
///
/// - Parameters:
///   - server: Whether the certificate is a server's. Of a client's certificate the host does not count.
///   - hostname: The name that the certificate has to be for, as it stands in a URL; `nil`: any. With a name that can be
///     no host every evaluation fails.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: String?) -> SecPolicy {
  SecPolicy(rule: hostname.flatMap { server ? .host($0) : nil } ?? .basic)
}

/// Creates the rules for a TLS server, of a name `as CFString?`.
@_disfavoredOverload
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
  SecPolicyCreateSSL(server, hostname.map { $0 as String })
}

/// Creates the rules for a chain, whatever host it is for.
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(rule: .basic) }

/// Creates the rules for revocation, to be set beside those of `SecPolicyCreateSSL(_:_:)`.
///
/// Larkspur asks no server about a certificate. What it knows of revocation are the lists of
/// ``TLSTrustSettings/revocationLists``, and these count in each evaluation, with or without such a rule: once there is one,
/// every issuer of the chain needs one that is up to date. What a server staples to its handshake (RFC 6066 8) counts in the
/// handshake, and in no evaluation after that.
///
/// So the flags decide one thing. With ``kSecRevocationRequirePositiveResponse`` a chain is only good if lists cover it and
/// ``kSecRevocationCRLMethod`` is set as well; otherwise the evaluation fails: an answer by OCSP is not to be had.
///
/// - Parameter revocationFlags: `kSecRevocation...`, at least one.
/// - Returns: The rules, or `nil` if there is no flag, or one that is not known.
public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
  guard 1..<(1 << 5) ~= revocationFlags else { return nil }
  return SecPolicy(rule: .revocation(revocationFlags))
}

/// Asks for OCSP (RFC 6960). Larkspur sends no such request.
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Asks for revocation lists (RFC 5280 5): those of ``TLSTrustSettings/revocationLists``.
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Prefers lists to OCSP. Without effect: lists are all there is.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// Demands a positive answer: see ``SecPolicyCreateRevocation(_:)``.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Forbids requests about revocation. Without effect: there are none.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// Asks for either of the two methods.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags = kSecRevocationOCSPMethod | kSecRevocationCRLMethod
