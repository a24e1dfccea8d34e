// The keys of `connectionProxyDictionary`, with the names of Darwin's network library.

/// The key of a number: whether plain HTTP goes through a proxy.
public let kCFNetworkProxiesHTTPEnable = "HTTPEnable"
/// The key of the proxy's host for plain HTTP.
public let kCFNetworkProxiesHTTPProxy = "HTTPProxy"
/// The key of the proxy's port for plain HTTP, a number from 1 to 65535.
public let kCFNetworkProxiesHTTPPort = "HTTPPort"
/// The key of a number: whether HTTPS goes through a proxy.
public let kCFNetworkProxiesHTTPSEnable = "HTTPSEnable"
/// The key of the proxy's host for HTTPS.
public let kCFNetworkProxiesHTTPSProxy = "HTTPSProxy"
/// The key of the proxy's port for HTTPS, a number from 1 to 65535.
public let kCFNetworkProxiesHTTPSPort = "HTTPSPort"
/// The key of a number: whether schemes without a specific proxy go through a SOCKS proxy.
public let kCFNetworkProxiesSOCKSEnable = "SOCKSEnable"
/// The key of the SOCKS proxy's host.
public let kCFNetworkProxiesSOCKSProxy = "SOCKSProxy"
/// The key of the SOCKS proxy's port, a number from 1 to 65535.
public let kCFNetworkProxiesSOCKSPort = "SOCKSPort"
/// The key of an array of strings: the hosts that are reached without a proxy.
public let kCFNetworkProxiesExceptionsList = "ExceptionsList"
