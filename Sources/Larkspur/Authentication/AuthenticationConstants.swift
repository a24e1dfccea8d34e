import Foundation

// The texts are those of Foundation on Linux, which programs have stored and compared; but those of the protocols are the
// schemes, as on Darwin: a space that is made with them is the one that a session asks about.

/// The method that is usual for the protocol: Basic, for HTTP.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// Basic (RFC 7617): user and password nearly as they are. Safe over TLS only.
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// Digest (RFC 7616): a hash of user, password and request.
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// A form in a page. No challenge is ever of this kind.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// NTLM. It is not spoken here: a response that offers nothing else is delivered as it is.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Kerberos or NTLM. It is not spoken here: a response that offers nothing else is delivered as it is.
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// The server wants a client certificate. Foundation on Linux does not have this one.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// The server's certificates wait for a decision. Foundation on Linux does not have this one.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// HTTP: the scheme, as on Darwin. Foundation on Linux has another text, which no session's challenge has.
public let NSURLProtectionSpaceHTTP = "http"
/// HTTP over TLS.
public let NSURLProtectionSpaceHTTPS = "https"
/// FTP, which is not spoken here.
public let NSURLProtectionSpaceFTP = "ftp"
/// A proxy that is spoken to without TLS.
public let NSURLProtectionSpaceHTTPProxy = "NSURLProtectionSpaceHTTPProxy"
/// A proxy that is spoken to over TLS.
public let NSURLProtectionSpaceHTTPSProxy = "NSURLProtectionSpaceHTTPSProxy"
/// A proxy for FTP.
public let NSURLProtectionSpaceFTPProxy = "NSURLProtectionSpaceFTPProxy"
/// A SOCKS proxy.
public let NSURLProtectionSpaceSOCKSProxy = "NSURLProtectionSpaceSOCKSProxy"

/// An option of ``URLCredentialStorage/remove(_:for:options:)``: an `NSNumber` that says whether a credential goes whose
/// persistence is ``URLCredential/Persistence/synchronizable``. Without it such a credential stays.
public let NSURLCredentialStorageRemoveSynchronizableCredentials =
  "NSURLCredentialStorageRemoveSynchronizableCredentials"

extension NSNotification.Name {
  /// A ``URLCredentialStorage`` holds other credentials than before. The object is the storage; it is posted on the thread
  /// that made the change.
  public static let NSURLCredentialStorageChanged = NSNotification.Name(
    rawValue: "NSURLCredentialStorageChangedNotification")
}
