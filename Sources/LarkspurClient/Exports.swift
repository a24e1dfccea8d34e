// The values of options, requests and responses. URLSession's side of Larkspur has them from the same modules.
@_exported import struct LarkspurHTTP.Field
@_exported import typealias LarkspurHTTP.FieldList
@_exported import struct LarkspurHTTP.PasswordCredential
@_exported import struct LarkspurHTTP.Proxy
@_exported import struct LarkspurHTTP.ProxyExceptions
@_exported import struct LarkspurHTTP.ProxySettings
@_exported import struct LarkspurIO.LocalEndpoint
@_exported import struct LarkspurTLS.Certificate
@_exported import struct LarkspurTLS.ClientIdentity
@_exported import enum LarkspurTLS.Pin
@_exported import struct LarkspurTLS.PinPolicy
@_exported import struct LarkspurTLS.TLSConfiguration
@_exported import enum LarkspurTLS.TLSVersion
@_exported import enum LarkspurTLS.TrustRoots
@_exported import struct LarkspurTransport.HostOverrides
@_exported import struct LarkspurTransport.RateLimits
@_exported import struct LarkspurTransport.Timeouts
