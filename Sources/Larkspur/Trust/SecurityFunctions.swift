import Foundation

// What programs for Darwin call. The names and what they do are Apple's (Security framework); the types are Swift's own:
// `Data` for CFData, arrays for CFArray, `Error` for CFError. Foundation on Linux has none of it.

/// `errSecSuccess` or another code of Darwin's.
public typealias OSStatus = Int32

/// It worked.
public let errSecSuccess: OSStatus = 0
/// An argument is of no use.
public let errSecParam: OSStatus = -50

// MARK: - Trust

/// Verifies a server's chain, by the settings of `trust`. About a millisecond, on the calling thread.
///
/// - Parameters:
///   - trust: The server's.
///   - error: Set to a ``ServerTrust/TrustResult`` if the chain is not good, or else to nil.
/// - Returns: Whether the chain is good.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: inout (any Error)?) -> Bool {
  let result = trust.reevaluate()
  error = result.isTrusted ? nil : result
  return result.isTrusted
}

/// The same for those who do not want to know why: the second argument is `nil`.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: Never?) -> Bool { trust.reevaluate().isTrusted }

/// How many certificates the chain has that was built. As on Darwin at least the server's own counts.
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> Int { SecTrustCopyCertificateChain(trust)?.count ?? 0 }

/// The chain that was built, the server's own certificate first; where none was found, what the server sent.
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> [SecCertificate]? {
  let verified = trust.verifiedChain
  return verified.isEmpty ? trust.sentChain : verified
}

/// One certificate of ``SecTrustCopyCertificateChain(_:)``. Nil: there are not so many.
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ index: Int) -> SecCertificate? {
  guard let chain = SecTrustCopyCertificateChain(trust), chain.indices.contains(index) else { return nil }
  return chain[index]
}

/// The key of the server's own certificate.
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? { trust.sentChain.first.flatMap(SecCertificateCopyKey) }

/// Sets where a chain has to end: at roots, intermediates or the server's own certificate. The session's own roots count no
/// more, until ``SecTrustSetAnchorCertificatesOnly(_:_:)`` lets them.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: [SecCertificate]?) -> OSStatus {
  trust.change { settings in
    settings.anchors = anchors
    settings.keepsRoots = false
  }
  return errSecSuccess
}

/// Whether the session's own roots do not count beside those that were set.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus {
  trust.change { $0.keepsRoots = !only }
  return errSecSuccess
}

/// Sets the time at which the chain has to be valid, in the place of now.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: Date) -> OSStatus {
  trust.change { $0.date = date }
  return errSecSuccess
}

/// Sets for whom the certificate has to be. The last policy counts.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: [SecPolicy]) -> OSStatus {
  guard let policy = policies.last else { return errSecParam }
  trust.change { $0.host = policy.rule }
  return errSecSuccess
}

/// Sets for whom the certificate has to be.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policy: SecPolicy) -> OSStatus {
  SecTrustSetPolicies(trust, [policy])
}

/// For whom a certificate has to be.
public struct SecPolicy: Sendable {
  let rule: ServerTrust.Settings.HostRule
}

/// The rules for a server of TLS.
///
/// - Parameters:
///   - server: Whether it is about a server's certificate. Others are not verified here: then the host does not count.
///   - hostname: The name that it has to be for. Nil: any.
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: String?) -> SecPolicy {
  SecPolicy(rule: hostname.flatMap { server ? .other($0) : nil } ?? .any)
}

/// The rules for a chain, whoever it is for.
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(rule: .any) }

// MARK: - Certificates and keys

/// Reads a certificate, DER. Nil: it is none.
///
/// - Parameters:
///   - allocator: Darwin's; nil here.
///   - data: DER.
public func SecCertificateCreateWithData(_ allocator: Never?, _ data: Data) -> SecCertificate? { TLSCertificate(data) }

/// The certificate, DER.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> Data { certificate.der }

/// Whom the certificate is about: the common name of its subject where there is one.
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> String? {
  let subject = certificate.subject
  var name = ""
  var isEscaped = false
  for character in subject + "," {
    // RFC 2253 2.2: a name's parts are parted by commas and plus signs that no backslash stands before.
    if !isEscaped, character == "," || character == "+" {
      if name.hasPrefix("CN=") { return String(name.dropFirst(3)) }
      name = ""
    } else if isEscaped || character != "\\" {
      name.append(character)
    }
    isEscaped = !isEscaped && character == "\\"
  }
  return subject.isEmpty ? nil : subject
}

/// The certificate's key.
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
  SecKey(publicKeyInfo: certificate.publicKeyInfo)
}

/// A public key, as a certificate has it.
public struct SecKey: Hashable, Sendable {
  let representation: Data

  /// Nil: it is no SubjectPublicKeyInfo.
  init?(publicKeyInfo: Data) {
    // SEQUENCE { SEQUENCE { algorithm }, BIT STRING { key } } (RFC 5280 4.1.2.7).
    var outer = DERReader(Array(publicKeyInfo)[...])
    guard let content = outer.take(tag: 0x30) else { return nil }
    var inner = DERReader(content)
    // The first byte counts the bits that are left over at the end: none, in a key.
    guard inner.take(tag: 0x30) != nil, let key = inner.take(tag: 0x03), key.first == 0 else { return nil }
    representation = Data(key.dropFirst())
  }
}

/// The key as Darwin writes it: PKCS#1 for RSA, X9.63 for elliptic curves.
///
/// - Parameters:
///   - key: A public one.
///   - error: Darwin's; nil here: a public key can always be written.
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: Never?) -> Data? { key.representation }

/// As much of DER as a key's frame needs.
private struct DERReader {
  private var bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// The content of the element that comes next. Nil: it has another tag, or is cut.
  mutating func take(tag: UInt8) -> ArraySlice<UInt8>? {
    guard bytes.popFirst() == tag, let first = bytes.popFirst() else { return nil }
    var count = Int(first)
    if first & 0x80 != 0 {
      let digits = Int(first & 0x7f)
      // A key of more than 16 MiB is none.
      guard 1...3 ~= digits, bytes.count >= digits else { return nil }
      count = bytes.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
      bytes = bytes.dropFirst(digits)
    }
    guard bytes.count >= count else { return nil }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }
}
