import Foundation

// What programs for Darwin call. The names and what they do are Apple's (Security framework). The functions take Swift's
// types, and besides the names of Core Foundation (CoreFoundationNames.swift); they return Swift's types, which lead to the
// others by `as CFData` and the like. Foundation on Linux has none of it.

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

/// Verifies a server's chain, without a word about why: the second argument is `nil`.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: Never?) -> Bool { trust.reevaluate().isTrusted }

/// Verifies a server's chain, by the settings of `trust`. About a millisecond, on the calling thread.
///
/// - Parameters:
///   - trust: The server's.
///   - error: Set to an error if the chain is not good, or else to `nil`. As on Darwin its domain is `NSOSStatusErrorDomain`
///     and its code one of `errSec...`: for another host ``errSecHostNameMismatch``, after its end
///     ``errSecCertificateExpired``, and ``errSecNotTrusted`` where no other fits.
/// - Returns: Whether the chain is good.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: inout CFError?) -> Bool {
  let result = trust.reevaluate()
  error = result.error
  return result.isTrusted
}

/// What ``SecTrustEvaluateAsyncWithError(_:_:_:)`` calls: the trust, whether its chain is good, and why not.
public typealias SecTrustWithErrorCallback = (SecTrust, Bool, CFError?) -> Void

/// Verifies a server's chain on a queue, and calls a closure there. As on Darwin, call it on that queue.
///
/// - Parameters:
///   - trust: The server's.
///   - queue: Where the verification, about a millisecond, and the closure run, in a block of their own.
///   - result: Called once. The error is that of `SecTrustEvaluateWithError`.
/// - Returns: ``errSecSuccess``.
@discardableResult
public func SecTrustEvaluateAsyncWithError(
  _ trust: SecTrust, _ queue: DispatchQueue, _ result: @escaping SecTrustWithErrorCallback
) -> OSStatus {
  let handler = QueuedCall(call: result)
  queue.async {
    var error: CFError?
    let isTrusted = SecTrustEvaluateWithError(trust, &error)
    handler.call(trust, isTrusted, error)
  }
  return errSecSuccess
}

/// Carries a closure to the queue that it was made for, where it is called once.
private struct QueuedCall: @unchecked Sendable {
  let call: SecTrustWithErrorCallback
}

/// Verifies a server's chain: the older form of `SecTrustEvaluateWithError`.
///
/// - Parameters:
///   - trust: The server's.
///   - result: Set to ``SecTrustResultType/unspecified`` if the chain is good, or else to one of the failures.
/// - Returns: ``errSecSuccess``, also for a chain that is not good.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: inout SecTrustResultType) -> OSStatus {
  result = trust.reevaluate().type
  return errSecSuccess
}

/// Tells what the last verification came to: ``SecTrustResultType/invalid`` if a setting has been changed since then, or
/// nothing has been verified. The trust of a challenge has been verified when the delegate gets it.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: inout SecTrustResultType) -> OSStatus {
  result = trust.currentResult?.type ?? .invalid
  return errSecSuccess
}

/// Makes a trust of certificates that come from elsewhere: a file, or a test. They are evaluated against the system's roots,
/// which are read now, on the calling thread, in up to 40 ms; or against those of `SecTrustSetAnchorCertificates`.
///
/// - Parameters:
///   - certificates: A ``SecCertificate``, or an array of them: the certificate in question first.
///   - policies: A ``SecPolicy``, or an array of them, of which every one counts. With `nil` a chain is good for any host.
///   - trust: Set to the trust, or to `nil` if there is an error. ``ServerTrust/host`` is the first name of the policies, or
///     `certificates.invalid` if they have none.
/// - Returns: ``errSecSuccess``; ``errSecParam`` if one of the arguments is something else, or empty;
///   ``errSecTrustNotAvailable`` if there is no memory. If the system's roots cannot be read, the evaluation fails and names
///   the file.
@discardableResult
public func SecTrustCreateWithCertificates(
  _ certificates: Any, _ policies: Any?, _ trust: inout SecTrust?
) -> OSStatus {
  trust = nil
  let rules = policies.map { elements(of: $0, as: SecPolicy.self) } ?? [SecPolicyCreateBasicX509()]
  guard let chain = elements(of: certificates, as: SecCertificate.self), !chain.isEmpty, let rules, !rules.isEmpty
  else { return errSecParam }
  do throws(ServerTrust.Failure) {
    trust = try SecTrust(chain, policies: rules)
    return errSecSuccess
  } catch {
    return errSecTrustNotAvailable
  }
}

/// The elements of an array, of Swift's or of Core Foundation's; or the one value that stands for an array.
///
/// - Returns: The elements, or `nil` if one of them is of another type.
private func elements<Element>(of value: Any, as type: Element.Type) -> [Element]? {
  if let one = value as? Element { return [one] }
  return value as? [Element]
}

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

/// The key of the server's own certificate: the older name of ``SecTrustCopyKey(_:)``.
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

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

/// Sets where a chain has to end, of an array `as CFArray`. If one of its elements is no certificate, no chain is good.
@discardableResult @_disfavoredOverload
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus {
  guard let anchors else { return SecTrustSetAnchorCertificates(trust, nil) }
  let certificates = elements(of: anchors, as: SecCertificate.self)
  SecTrustSetAnchorCertificates(trust, certificates ?? [])
  return certificates == nil ? errSecParam : errSecSuccess
}

/// Sets whether the session's own roots do not count beside the anchors that were set. Without anchors no chain is good then.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus {
  trust.change {
    $0.keepsRoots = !only
    $0.hasAnchorsOnly = only
  }
  return errSecSuccess
}

/// Sets the time at which the chain has to be valid, in the place of now.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: Date) -> OSStatus {
  trust.change { $0.date = date }
  return errSecSuccess
}

/// Sets the time at which the chain has to be valid, of a date `as CFDate`.
@discardableResult @_disfavoredOverload
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: CFDate) -> OSStatus {
  SecTrustSetVerifyDate(trust, date as Date)
}

/// Sets the rules that a chain has to obey, in the place of those that the trust has. As on Darwin every policy counts: the
/// certificate has to be for each host that one of them names, and for no certain host if none does.
///
/// - Parameters:
///   - trust: The server's. Without policies its certificate has to be for the host that was connected to.
///   - policies: At least one. If there is none, no chain is good until others are set.
/// - Returns: ``errSecSuccess``, or ``errSecParam`` if there is none.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: [SecPolicy]) -> OSStatus {
  trust.change { $0.policies = policies }
  return policies.isEmpty ? errSecParam : errSecSuccess
}

/// Sets the rules that a chain has to obey: a ``SecPolicy``, or an array of them `as CFArray`. Anything else is taken for no
/// policy at all: ``errSecParam``, and no chain is good.
@discardableResult @_disfavoredOverload
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: Any) -> OSStatus {
  SecTrustSetPolicies(trust, elements(of: policies, as: SecPolicy.self) ?? [])
}

// MARK: - Certificates and keys

/// Reads a certificate in DER, as on Darwin. ``TLSCertificate/init(_:)`` reads PEM as well.
///
/// - Parameters:
///   - allocator: Darwin's; `nil` here.
///   - data: DER of one certificate, and no byte behind it.
/// - Returns: The certificate, or `nil` if `data` is something else.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: Data) -> SecCertificate? {
  TLSCertificate(data).flatMap { $0.der == data ? $0 : nil }
}

/// Reads a certificate in DER, of data `as CFData`.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
  SecCertificateCreateWithData(allocator, data as Data)
}

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

/// The key as Darwin writes it. `error` stays as it is: a public key can always be written.
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: inout Unmanaged<CFError>?) -> Data? {
  key.representation
}

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
