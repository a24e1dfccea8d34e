import Foundation

// The texts of the methods and proxy types are those of Foundation on Linux, because programs have stored and compared
// them. The texts of the protocols are URL schemes, as on Darwin: a space that a program makes with one of them equals
// the space of a session's challenge.

/// The protocol's usual method: Basic, for HTTP.
public let NSURLAuthenticationMethodDefault = "NSURLAuthenticationMethodDefault"
/// Basic (RFC 7617): sends user and password in base64, without encryption. Safe over TLS only.
public let NSURLAuthenticationMethodHTTPBasic = "NSURLAuthenticationMethodHTTPBasic"
/// Digest (RFC 7616): a hash of user, password and request.
public let NSURLAuthenticationMethodHTTPDigest = "NSURLAuthenticationMethodHTTPDigest"
/// A form in a web page. No challenge uses this method.
public let NSURLAuthenticationMethodHTMLForm = "NSURLAuthenticationMethodHTMLForm"
/// NTLM. Larkspur does not support NTLM: a response that offers nothing else is delivered unchanged.
public let NSURLAuthenticationMethodNTLM = "NSURLAuthenticationMethodNTLM"
/// Kerberos or NTLM. Larkspur does not support this method: a response that offers nothing else is delivered unchanged.
public let NSURLAuthenticationMethodNegotiate = "NSURLAuthenticationMethodNegotiate"
/// The server asks for a client certificate. Foundation on Linux does not have this constant.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"
/// The server's certificates need a decision about trust. Foundation on Linux does not have this constant.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"

/// HTTP. The text is the scheme, as on Darwin. Foundation on Linux uses another text, which no session's challenge has.
public let NSURLProtectionSpaceHTTP = "http"
/// HTTP over TLS. The text is the scheme.
public let NSURLProtectionSpaceHTTPS = "https"
/// FTP, which Larkspur does not support.
public let NSURLProtectionSpaceFTP = "ftp"
/// An HTTP proxy that is connected to without TLS.
public let NSURLProtectionSpaceHTTPProxy = "NSURLProtectionSpaceHTTPProxy"
/// An HTTP proxy that is connected to over TLS.
public let NSURLProtectionSpaceHTTPSProxy = "NSURLProtectionSpaceHTTPSProxy"
/// A proxy for FTP.
public let NSURLProtectionSpaceFTPProxy = "NSURLProtectionSpaceFTPProxy"
/// A SOCKS proxy.
public let NSURLProtectionSpaceSOCKSProxy = "NSURLProtectionSpaceSOCKSProxy"

/// A key in the options of ``URLCredentialStorage/remove(_:for:options:)``. Its value, an `NSNumber`, says whether a
/// credential with the persistence ``URLCredential/Persistence/synchronizable`` is removed. Without this option such a
/// credential stays.
public let NSURLCredentialStorageRemoveSynchronizableCredentials =
  "NSURLCredentialStorageRemoveSynchronizableCredentials"

extension NSNotification.Name {
  /// Posted when the credentials of a ``URLCredentialStorage`` have changed. The object is the storage. The
  /// notification is posted on the thread that made the change.
  public static let NSURLCredentialStorageChanged = NSNotification.Name(
    rawValue: "NSURLCredentialStorageChangedNotification")
}
