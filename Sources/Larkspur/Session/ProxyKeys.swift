// The keys of `connectionProxyDictionary`, under the names that Darwin's network library gives them.

/// A number: whether plain HTTP goes by way of a proxy.
public let kCFNetworkProxiesHTTPEnable = "HTTPEnable"
/// The proxy's host for plain HTTP.
public let kCFNetworkProxiesHTTPProxy = "HTTPProxy"
/// The proxy's port for plain HTTP, a number from 1 to 65535.
public let kCFNetworkProxiesHTTPPort = "HTTPPort"
/// A number: whether HTTPS goes by way of a proxy.
public let kCFNetworkProxiesHTTPSEnable = "HTTPSEnable"
/// The proxy's host for HTTPS.
public let kCFNetworkProxiesHTTPSProxy = "HTTPSProxy"
/// The proxy's port for HTTPS, a number from 1 to 65535.
public let kCFNetworkProxiesHTTPSPort = "HTTPSPort"
/// A number: whether everything else goes by way of a SOCKS proxy.
public let kCFNetworkProxiesSOCKSEnable = "SOCKSEnable"
/// The SOCKS proxy's host.
public let kCFNetworkProxiesSOCKSProxy = "SOCKSProxy"
/// The SOCKS proxy's port, a number from 1 to 65535.
public let kCFNetworkProxiesSOCKSPort = "SOCKSPort"
/// An array of strings: hosts that are loaded from without a proxy.
public let kCFNetworkProxiesExceptionsList = "ExceptionsList"
