import Foundation

// Functions of Darwin's Security framework. Names and behavior are Apple's. The functions take Swift's types, and
// also those with Core Foundation's names (CoreFoundationNames.swift). They return Swift's types, which convert with
// `as CFData` and the like. Foundation on Linux lacks these functions.

// MARK: - Trust

/// Verifies a server's chain with the settings of `trust`. Takes about 1 ms on the calling thread.
///
/// - Parameters:
///   - trust: The server's trust.
///   - error: Set to a ``ServerTrust/TrustResult`` if the chain is not good, and to `nil` otherwise.
/// - Returns: Whether the chain is good.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: inout (any Error)?) -> Bool {
  let result = trust.reevaluate()
  error = result.isTrusted ? nil : result
  return result.isTrusted
}

/// Verifies a server's chain without giving a reason for a failure: the second argument is `nil`.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: Never?) -> Bool { trust.reevaluate().isTrusted }

/// Verifies a server's chain with the settings of `trust`. Takes about 1 ms on the calling thread.
///
/// - Parameters:
///   - trust: The server's trust.
///   - error: Set to an error if the chain is not good, and to `nil` otherwise. As on Darwin its domain is
///     `NSOSStatusErrorDomain` and its code one of `errSec...`: ``errSecHostNameMismatch`` if the certificate is for
///     another host, ``errSecCertificateExpired`` if it has expired, and ``errSecNotTrusted`` if no other code fits.
/// - Returns: Whether the chain is good.
public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: inout CFError?) -> Bool {
  let result = trust.reevaluate()
  error = result.error
  return result.isTrusted
}

/// The closure that ``SecTrustEvaluateAsyncWithError(_:_:_:)`` calls, with the trust, whether its chain is good, and
/// the error if it is not.
public typealias SecTrustWithErrorCallback = (SecTrust, Bool, CFError?) -> Void

/// Verifies a server's chain on a queue, and calls a closure there. As on Darwin, call this function on that queue.
///
/// - Parameters:
///   - trust: The server's trust.
///   - queue: The queue that runs the verification, which takes about 1 ms, and the closure, in a separate block.
///   - result: Called once. Its error is that of `SecTrustEvaluateWithError`.
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

/// Verifies a server's chain. The older form of `SecTrustEvaluateWithError`.
///
/// - Parameters:
///   - trust: The server's trust.
///   - result: Set to ``SecTrustResultType/unspecified`` if the chain is good, and to one of the failures otherwise.
/// - Returns: ``errSecSuccess``, even for a chain that is not good.
@discardableResult
public func SecTrustEvaluate(_ trust: SecTrust, _ result: inout SecTrustResultType) -> OSStatus {
  result = trust.reevaluate().type
  return errSecSuccess
}

/// Gets the result of the last verification: ``SecTrustResultType/invalid`` if a setting has been changed since then,
/// or nothing has been verified. The trust of a challenge has been verified when the delegate gets it.
@discardableResult
public func SecTrustGetTrustResult(_ trust: SecTrust, _ result: inout SecTrustResultType) -> OSStatus {
  result = trust.currentResult?.type ?? .invalid
  return errSecSuccess
}

/// Creates a trust for certificates that do not come from a handshake, but from a file or a test. They are evaluated
/// against the system's roots, which this call reads on the calling thread in up to 40 ms, or against those of
/// `SecTrustSetAnchorCertificates`.
///
/// - Parameters:
///   - certificates: A ``SecCertificate``, or an array of them, the certificate to verify first.
///   - policies: A ``SecPolicy``, or an array of them, all of which apply. With `nil` a chain is good for any host.
///   - trust: Set to the trust, or to `nil` if there is an error. ``ServerTrust/host`` is the first host that the
///     policies name, or `certificates.invalid` if they name no host.
/// - Returns: ``errSecSuccess``; ``errSecParam`` if one of the arguments is of another type or empty;
///   ``errSecTrustNotAvailable`` if there is not enough memory. If the system's roots cannot be read, the evaluation
///   fails and names the file.
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

/// Returns the elements of an array, Swift's or Core Foundation's, or one value as an array.
///
/// - Returns: The elements, or `nil` if one of them is of another type.
private func elements<Element>(of value: Any, as type: Element.Type) -> [Element]? {
  if let one = value as? Element { return [one] }
  return value as? [Element]
}

/// Returns the number of certificates in ``SecTrustCopyCertificateChain(_:)``. As on Darwin the server's own counts
/// even if no chain was found.
public func SecTrustGetCertificateCount(_ trust: SecTrust) -> Int { SecTrustCopyCertificateChain(trust)?.count ?? 0 }

/// Returns the chain that was built, the server's own certificate first, or, if none was found, the chain that the
/// server sent.
public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> [SecCertificate]? {
  let verified = trust.verifiedChain
  return verified.isEmpty ? trust.sentChain : verified
}

/// Returns one certificate of ``SecTrustCopyCertificateChain(_:)``, or `nil` if the index is out of range.
public func SecTrustGetCertificateAtIndex(_ trust: SecTrust, _ index: Int) -> SecCertificate? {
  guard let chain = SecTrustCopyCertificateChain(trust), chain.indices.contains(index) else { return nil }
  return chain[index]
}

/// Returns the key of the server's own certificate.
public func SecTrustCopyKey(_ trust: SecTrust) -> SecKey? { trust.sentChain.first.flatMap(SecCertificateCopyKey) }

/// Returns the key of the server's own certificate. The older name of ``SecTrustCopyKey(_:)``.
public func SecTrustCopyPublicKey(_ trust: SecTrust) -> SecKey? { SecTrustCopyKey(trust) }

/// Sets the certificates at which a chain has to end: roots, intermediates or the server's own certificate. The
/// session's roots no longer count, unless ``SecTrustSetAnchorCertificatesOnly(_:_:)`` is called afterwards with
/// `false`.
@discardableResult
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: [SecCertificate]?) -> OSStatus {
  trust.change { settings in
    settings.anchors = anchors
    settings.keepsRoots = false
  }
  return errSecSuccess
}

/// Sets the certificates at which a chain has to end, from an array `as CFArray`. If one of its elements is not a
/// certificate, no chain is good.
@discardableResult @_disfavoredOverload
public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchors: CFArray?) -> OSStatus {
  guard let anchors else { return SecTrustSetAnchorCertificates(trust, nil) }
  let certificates = elements(of: anchors, as: SecCertificate.self)
  SecTrustSetAnchorCertificates(trust, certificates ?? [])
  return certificates == nil ? errSecParam : errSecSuccess
}

/// Sets whether only the anchors count, and the session's roots do not. If there are no anchors, no chain is good then.
@discardableResult
public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ only: Bool) -> OSStatus {
  trust.change {
    $0.keepsRoots = !only
    $0.hasAnchorsOnly = only
  }
  return errSecSuccess
}

/// Sets the time at which the chain has to be valid, in place of the current time.
@discardableResult
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: Date) -> OSStatus {
  trust.change { $0.date = date }
  return errSecSuccess
}

/// Sets the time at which the chain has to be valid, from a date `as CFDate`.
@discardableResult @_disfavoredOverload
public func SecTrustSetVerifyDate(_ trust: SecTrust, _ date: CFDate) -> OSStatus {
  SecTrustSetVerifyDate(trust, date as Date)
}

/// Sets the rules for a chain, replacing those of the trust. As on Darwin all policies apply: the certificate has to be
/// for each host that one of them names, and for any host if none does.
///
/// - Parameters:
///   - trust: The server's trust. Before policies are set, its certificate has to be for the connected host.
///   - policies: At least one policy. If there is none, no chain is good until others are set.
/// - Returns: ``errSecSuccess``, or ``errSecParam`` if there is no policy.
@discardableResult
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: [SecPolicy]) -> OSStatus {
  trust.change { $0.policies = policies }
  return policies.isEmpty ? errSecParam : errSecSuccess
}

/// Sets the rules for a chain, from a ``SecPolicy`` or an array of them `as CFArray`. A value of another type counts as
/// no policy: the function returns ``errSecParam``, and no chain is good.
@discardableResult @_disfavoredOverload
public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: Any) -> OSStatus {
  SecTrustSetPolicies(trust, elements(of: policies, as: SecPolicy.self) ?? [])
}

/// Returns data for `SecTrustSetExceptions`: the failures of the current evaluation, for the server's own
/// certificate. With them, later evaluations of a trust of this certificate succeed unless they find another failure.
///
/// Call this function after the program's user has accepted the failures. Takes 5 ms or less on the calling thread.
///
/// - Parameter trust: The server's trust. It does not change.
/// - Returns: The data, which may be stored, or `nil` if the chain has a failure that cannot be ignored: a wrong
///   signature, a weak key, a revocation or lack of its answer, or policies that are invalid. On Darwin the evaluation
///   fails later in these cases.
public func SecTrustCopyExceptions(_ trust: SecTrust) -> Data? {
  trust.failures(by: trust.settings).flatMap { try? JSONEncoder().encode($0) }
}

/// Sets the failures that evaluations of a trust ignore, in place of those set before. Evaluate the trust afterwards,
/// because other failures count. ``SecTrustGetTrustResult(_:_:)`` is ``SecTrustResultType/proceed`` if failures were
/// ignored.
///
/// Pins of ``TLSTrustSettings/pins`` and of AFNetworking's policy match only the server's own certificate of such a
/// chain, or none.
///
/// - Parameters:
///   - trust: The server's trust.
///   - exceptions: Data of ``SecTrustCopyExceptions(_:)``, or `nil` for no exceptions.
/// - Returns: Whether the data is for the server's own certificate. If not, evaluations ignore nothing.
@discardableResult
public func SecTrustSetExceptions(_ trust: SecTrust, _ exceptions: Data?) -> Bool {
  let read = exceptions.flatMap { try? JSONDecoder().decode(TrustExceptions.self, from: $0) }
  let own = read.flatMap { $0.certificate == trust.sentChain.first?.sha256 ? $0 : nil }
  trust.change { $0.exceptions = own }
  return own != nil
}

/// Sets the failures that evaluations of a trust ignore, from data `as CFData?`.
@discardableResult @_disfavoredOverload
public func SecTrustSetExceptions(_ trust: SecTrust, _ exceptions: CFData?) -> Bool {
  SecTrustSetExceptions(trust, exceptions.map { $0 as Data })
}

/// Stores whether an evaluation may fetch missing intermediate certificates. The value has no effect: Larkspur does not
/// fetch them, because a server could make a client send requests with the addresses in its certificate. Add
/// intermediate certificates to a trust of ``SecTrustCreateWithCertificates(_:_:_:)`` instead.
///
/// - Returns: ``errSecSuccess``.
@discardableResult
public func SecTrustSetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: Bool) -> OSStatus {
  trust.allowsNetworkFetch = allowFetch
  return errSecSuccess
}

/// Gets the value of ``SecTrustSetNetworkFetchAllowed(_:_:)``. `false` by default, because Larkspur fetches no
/// certificates; Darwin's default is `true` for the rules of `SecPolicyCreateSSL(_:_:)`.
///
/// - Returns: ``errSecSuccess``.
@discardableResult
public func SecTrustGetNetworkFetchAllowed(_ trust: SecTrust, _ allowFetch: inout DarwinBoolean) -> OSStatus {
  allowFetch = DarwinBoolean(trust.allowsNetworkFetch)
  return errSecSuccess
}

// MARK: - Certificates and keys

/// Reads a certificate in DER, as on Darwin. ``TLSCertificate/init(_:)`` reads PEM as well.
///
/// - Parameters:
///   - allocator: Darwin's parameter; `nil` here.
///   - data: One certificate in DER, without bytes after it.
/// - Returns: The certificate, or `nil` if `data` is something else.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: Data) -> SecCertificate? {
  TLSCertificate(data).flatMap { $0.der == data ? $0 : nil }
}

/// Reads a certificate in DER, from data `as CFData`.
public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
  SecCertificateCreateWithData(allocator, data as Data)
}

/// Returns the certificate in DER.
public func SecCertificateCopyData(_ certificate: SecCertificate) -> Data { certificate.der }

/// Returns the common name of the certificate's subject, or the whole subject if it has no common name, or `nil` if the
/// subject is empty.
public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> String? {
  let subject = certificate.subject
  var name = ""
  var isEscaped = false
  for character in subject + "," {
    // RFC 2253 2.2: the parts of a name are separated by commas and plus signs that are not escaped by a backslash.
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

/// Returns the certificate's public key.
public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? {
  SecKey(publicKeyInfo: certificate.publicKeyInfo)
}

/// A public key of a certificate.
public struct SecKey: Hashable, Sendable {
  let representation: Data

  /// Creates a key, or returns `nil` if the data is not a SubjectPublicKeyInfo.
  init?(publicKeyInfo: Data) {
    // SEQUENCE { SEQUENCE { algorithm }, BIT STRING { key } } (RFC 5280 4.1.2.7).
    var outer = DERReader(Array(publicKeyInfo)[...])
    guard let content = outer.take(tag: 0x30) else { return nil }
    var inner = DERReader(content)
    // The first byte is the number of unused bits at the end, which is 0 for a key.
    guard inner.take(tag: 0x30) != nil, let key = inner.take(tag: 0x03), key.first == 0 else { return nil }
    representation = Data(key.dropFirst())
  }
}

/// Returns the key in Darwin's form: PKCS#1 for RSA, X9.63 for elliptic curves.
///
/// - Parameters:
///   - key: A public key.
///   - error: Darwin's parameter; `nil` here, because writing a public key cannot fail.
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: Never?) -> Data? { key.representation }

/// Returns the key in Darwin's form: PKCS#1 for RSA, X9.63 for elliptic curves. `error` is not changed, because writing
/// a public key cannot fail.
public func SecKeyCopyExternalRepresentation(_ key: SecKey, _ error: inout Unmanaged<CFError>?) -> Data? {
  key.representation
}

/// Reads the part of DER that the structure of a key uses.
private struct DERReader {
  private var bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

  /// Returns the content of the next element, or `nil` if the element has another tag or is incomplete.
  mutating func take(tag: UInt8) -> ArraySlice<UInt8>? {
    guard bytes.popFirst() == tag, let first = bytes.popFirst() else { return nil }
    var count = Int(first)
    if first & 0x80 != 0 {
      let digits = Int(first & 0x7f)
      // A length of more than three bytes (16 MiB) is not that of a key.
      guard 1...3 ~= digits, bytes.count >= digits else { return nil }
      count = bytes.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
      bytes = bytes.dropFirst(digits)
    }
    guard bytes.count >= count else { return nil }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }
}
