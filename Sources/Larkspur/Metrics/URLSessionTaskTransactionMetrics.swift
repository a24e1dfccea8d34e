import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// One request and its response in numbers. Dates are nil for what did not happen, so all of the connection's are for a
/// request over one that was there already. Immutable, and for any thread.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
  public let request: URLRequest
  public let response: URLResponse?

  /// When the task asked for the resource.
  public let fetchStartDate: Date?
  public let domainLookupStartDate: Date?
  public let domainLookupEndDate: Date?
  /// With the handshake, if there was one, up to `connectEndDate`.
  public let connectStartDate: Date?
  public let secureConnectionStartDate: Date?
  public let secureConnectionEndDate: Date?
  public let connectEndDate: Date?
  public let requestStartDate: Date?
  public let requestEndDate: Date?
  public let responseStartDate: Date?
  public let responseEndDate: Date?

  /// Bytes, here and below. Larkspur puts no coding on a body, so these two are equal but for the chunked coding.
  public let countOfRequestBodyBytesBeforeEncoding: Int64
  public let countOfRequestBodyBytesSent: Int64
  public let countOfRequestHeaderBytesSent: Int64
  public let countOfResponseBodyBytesAfterDecoding: Int64
  public let countOfResponseBodyBytesReceived: Int64
  public let countOfResponseHeaderBytesReceived: Int64

  /// `http/1.1`, or `http/1.0` if the server answers so.
  public let networkProtocolName: String?
  private let remote: SocketAddress?
  private let local: SocketAddress?
  // Made into text when somebody asks: most programs ask for no metrics at all.
  public var remoteAddress: String? { Self.parts(remote).0 }
  public var remotePort: String? { Self.parts(remote).1 }
  public var localAddress: String? { Self.parts(local).0 }
  public var localPort: String? { Self.parts(local).1 }
  public let negotiatedTLSCipherSuite: tls_ciphersuite_t?
  public let negotiatedTLSProtocolVersion: tls_protocol_version_t?
  /// False: no interface of Linux says so of itself. The same goes for the next two.
  public let isCellular = false
  public let isExpensive = false
  public let isConstrained = false
  public let isProxyConnection: Bool
  public let isReusedConnection: Bool
  public let isMultipath = false
  public let resourceFetchType: URLSessionTaskMetrics.ResourceFetchType
  public let domainResolutionProtocol = URLSessionTaskMetrics.DomainResolutionProtocol.unknown

  /// For a resource that came from the cache, or from a program's protocol.
  init(
    cached request: URLRequest, response: URLResponse?, start: Date, end: Date, bytes: Int64,
    type: URLSessionTaskMetrics.ResourceFetchType = .localCache
  ) {
    self.request = request
    self.response = response
    fetchStartDate = start
    domainLookupStartDate = nil
    domainLookupEndDate = nil
    connectStartDate = nil
    secureConnectionStartDate = nil
    secureConnectionEndDate = nil
    connectEndDate = nil
    requestStartDate = start
    requestEndDate = start
    responseStartDate = start
    responseEndDate = end
    countOfRequestBodyBytesBeforeEncoding = 0
    countOfRequestBodyBytesSent = 0
    countOfRequestHeaderBytesSent = 0
    countOfResponseBodyBytesAfterDecoding = bytes
    countOfResponseBodyBytesReceived = 0
    countOfResponseHeaderBytesReceived = 0
    networkProtocolName = nil
    remote = nil
    local = nil
    negotiatedTLSCipherSuite = nil
    negotiatedTLSProtocolVersion = nil
    isProxyConnection = false
    isReusedConnection = false
    resourceFetchType = type
  }

  /// - Parameters:
  ///   - start: No date is before it.
  ///   - date: Makes a date of a moment of the loop's clock.
  init(
    _ metrics: ExchangeMetrics, request: URLRequest, response: URLResponse?, isProxied: Bool, bodyBytes: Int64,
    decodedBytes: Int64,
    start: Date, date: (Deadline?) -> Date?
  ) {
    self.request = request
    self.response = response
    // The connection may be older than the request: then its parts are none of this transaction's.
    let connection = metrics.isReused ? nil : metrics.connection
    let dial = metrics.connection
    var latest = start
    // A connection may have been opened for a request that did not wait for it any more, and before this one was made; and
    // the clock of a turn of the loop stands still.
    func following(_ moment: Deadline?) -> Date? {
      guard let date = date(moment) else { return nil }
      latest = max(latest, date)
      return latest
    }
    fetchStartDate = following(metrics.requested)
    domainLookupStartDate = following(connection?.lookUp?.start)
    domainLookupEndDate = following(connection?.lookUp?.end)
    connectStartDate = following(connection?.connect?.start)
    secureConnectionStartDate = following(connection?.handshake?.start)
    secureConnectionEndDate = following(connection?.handshake?.end)
    connectEndDate = following(connection?.handshake?.end ?? connection?.tunnel?.end ?? connection?.connect?.end)
    requestStartDate = following(metrics.started)
    // The server may answer before it has the whole request: that is no mistake of the clock.
    requestEndDate = date(metrics.sent).map { max($0, latest) }
    responseStartDate = following(metrics.firstByte)
    responseEndDate = following(metrics.ended)
    countOfRequestBodyBytesBeforeEncoding = bodyBytes
    countOfRequestBodyBytesSent = Int64(metrics.requestBodyBytes)
    countOfRequestHeaderBytesSent = Int64(metrics.requestHeadBytes)
    countOfResponseBodyBytesAfterDecoding = decodedBytes
    countOfResponseBodyBytesReceived = Int64(metrics.responseBodyBytes)
    countOfResponseHeaderBytesReceived = Int64(metrics.responseHeadBytes)
    networkProtocolName = (response as? HTTPURLResponse)?.httpVersion.lowercased()
    remote = dial?.remoteAddress
    local = dial?.localAddress
    negotiatedTLSCipherSuite = dial?.cipher.flatMap { tls_ciphersuite_t(standardName: $0) }
    negotiatedTLSProtocolVersion = dial?.tlsVersion.map { $0 == .tls13 ? .TLSv13 : .TLSv12 }
    isProxyConnection = isProxied
    isReusedConnection = metrics.isReused
    resourceFetchType = .networkLoad
  }

  private static func parts(_ address: SocketAddress?) -> (String?, String?) {
    guard let address else { return (nil, nil) }
    let text = "\(address)"
    guard address.family != .unix, let colon = text.lastIndex(of: ":") else { return (text, nil) }
    let host = text[..<colon]
    return (host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host), "\(address.port)")
  }
}
