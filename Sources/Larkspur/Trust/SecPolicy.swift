import Foundation

/// A rule for the evaluation of a chain. Immutable, and safe to use from any thread. See `SecTrustSetPolicies(_:_:)`.
public struct SecPolicy: Hashable, Sendable {
  enum Rule: Hashable, Sendable {
    /// The rules of RFC 5280 for a server's chain, and no others.
    case basic
    /// The certificate has to be for this host.
    case host(String)
    /// The flags of a rule for revocation, `kSecRevocation...`.
    case revocation(CFOptionFlags)
  }

  let rule: Rule

  /// The host that the certificate has to be for, or `nil` if the rule names no host.
  var host: String? { if case .host(let name) = rule { name } else { nil } }

  /// Whether the rule requires a positive answer about revocation that Larkspur cannot give. With revocation lists, a
  /// good chain has already been checked against the list of each issuer.
  func lacksAnswer(hasLists: Bool) -> Bool {
    guard case .revocation(let flags) = rule, flags & kSecRevocationRequirePositiveResponse != 0 else { return false }
    return !hasLists || flags & kSecRevocationCRLMethod == 0
  }
}

/// Creates the rules for a TLS server.
///
/// - Parameters:
///   - server: Whether the certificate is a server's. For a client's certificate the host is ignored.
///   - hostname: The host that the certificate has to be for, as in a URL; `nil` for any host. With a text that cannot
///     be a host every evaluation fails.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: String?) -> SecPolicy {
  SecPolicy(rule: hostname.flatMap { server ? .host($0) : nil } ?? .basic)
}

/// Creates the rules for a TLS server, from a name `as CFString?`.
@_disfavoredOverload
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
  SecPolicyCreateSSL(server, hostname.map { $0 as String })
}

/// Creates the rules for a chain, whatever host it is for.
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(rule: .basic) }

/// Creates the rules for revocation, to be set together with those of `SecPolicyCreateSSL(_:_:)`.
///
/// Larkspur sends no requests about revocation. It uses the lists of ``TLSTrustSettings/revocationLists``, and these
/// apply to each evaluation, with or without this rule: if there is at least one, each issuer of the chain
/// needs one that is up to date. A response that a server staples to its handshake (RFC 6066 8) counts in the
/// handshake, and in no later evaluation.
///
/// Therefore the flags have one effect. With ``kSecRevocationRequirePositiveResponse`` a chain is good only if there
/// are lists and ``kSecRevocationCRLMethod`` is set as well. Otherwise the evaluation fails, because Larkspur cannot
/// get an answer by OCSP.
///
/// - Parameter revocationFlags: `kSecRevocation...`, at least one.
/// - Returns: The rules, or `nil` if there is no flag, or an unknown one.
public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
  guard 1..<(1 << 5) ~= revocationFlags else { return nil }
  return SecPolicy(rule: .revocation(revocationFlags))
}

/// Asks for OCSP (RFC 6960). Larkspur sends no such request.
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Asks for revocation lists (RFC 5280 5): those of ``TLSTrustSettings/revocationLists``.
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Prefers lists to OCSP. This flag has no effect, because only lists are supported.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// Requires a positive answer: see ``SecPolicyCreateRevocation(_:)``.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Forbids requests about revocation. This flag has no effect, because Larkspur sends no such requests.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// Asks for either of the two methods.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags = kSecRevocationOCSPMethod | kSecRevocationCRLMethod
