import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// One request and its response in numbers. Dates are nil for what did not happen, so all of the connection's are for a
/// request over one that was there already. Immutable, and for any thread.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
  /// As it was made: before what the session adds.
  open var request: URLRequest { storedRequest }
  /// Nil: none has come.
  open var response: URLResponse? { storedResponse }

  // The rest is made when somebody asks: most programs ask for no metrics at all.
  private let source: Source
  private let start: Date
  private let storedRequest: URLRequest
  private let storedResponse: URLResponse?
  private let isProxied: Bool
  private let fetchType: URLSessionTaskMetrics.ResourceFetchType

  private enum Source: Sendable {
    /// From the cache, or from a program's protocol: until when, and how many bytes.
    case local(end: Date, bytes: Int64)
    case network(ExchangeMetrics, ClockReading, bodyBytes: Int64, decodedBytes: Int64)
  }

  private var exchange: ExchangeMetrics? { if case .network(let metrics, _, _, _) = source { metrics } else { nil } }

  /// When the task asked for the resource.
  open var fetchStartDate: Date? { dates.fetchStart }
  /// The look-up of the host's addresses, or of the proxy's.
  open var domainLookupStartDate: Date? { dates.lookUpStart }
  /// See ``domainLookupStartDate``.
  open var domainLookupEndDate: Date? { dates.lookUpEnd }
  /// With the handshake, if there was one, up to `connectEndDate`.
  open var connectStartDate: Date? { dates.connectStart }
  /// The TLS handshake. Nil without TLS.
  open var secureConnectionStartDate: Date? { dates.handshakeStart }
  /// See ``secureConnectionStartDate``.
  open var secureConnectionEndDate: Date? { dates.handshakeEnd }
  /// When the connection could take a request.
  open var connectEndDate: Date? { dates.connectEnd }
  /// When the first byte of the request left. What came from the cache has these dates, too: those of its reading.
  open var requestStartDate: Date? { dates.requestStart }
  /// When the last byte of the request left: after the response came, perhaps, if the server answers while it reads.
  open var requestEndDate: Date? { dates.requestEnd }
  /// When the first byte of the response came.
  open var responseStartDate: Date? { dates.responseStart }
  /// When the last byte of the response came.
  open var responseEndDate: Date? { dates.responseEnd }

  /// Bytes, here and below. Larkspur puts no coding on a body, so this and ``countOfRequestBodyBytesSent`` differ by the
  /// chunked coding only.
  open var countOfRequestBodyBytesBeforeEncoding: Int64 {
    if case .network(_, _, let bodyBytes, _) = source { bodyBytes } else { 0 }
  }
  /// With the chunked coding around it.
  open var countOfRequestBodyBytesSent: Int64 { Int64(exchange?.requestBodyBytes ?? 0) }
  /// The request line among them.
  open var countOfRequestHeaderBytesSent: Int64 { Int64(exchange?.requestHeadBytes ?? 0) }
  /// Of the content, as the task has received it.
  open var countOfResponseBodyBytesAfterDecoding: Int64 {
    switch source {
    case .local(_, let bytes): bytes
    case .network(_, _, _, let decodedBytes): decodedBytes
    }
  }
  /// Of the body, as it came over the wire.
  open var countOfResponseBodyBytesReceived: Int64 { Int64(exchange?.responseBodyBytes ?? 0) }
  /// The status line among them.
  open var countOfResponseHeaderBytesReceived: Int64 { Int64(exchange?.responseHeadBytes ?? 0) }

  /// `http/1.1`, or `http/1.0` if the server answers so.
  open var networkProtocolName: String? {
    exchange == nil ? nil : (response as? HTTPURLResponse)?.httpVersion.lowercased()
  }
  /// Of the server, or of the proxy. An address without brackets, and its port in decimal: text as in FoundationNetworking,
  /// where Darwin has a number.
  open var remoteAddress: String? { Self.parts(exchange?.connection?.remoteAddress).0 }
  /// See ``remoteAddress``.
  open var remotePort: String? { Self.parts(exchange?.connection?.remoteAddress).1 }
  /// This end of the connection, in the same way.
  open var localAddress: String? { Self.parts(exchange?.connection?.localAddress).0 }
  /// See ``localAddress``.
  open var localPort: String? { Self.parts(exchange?.connection?.localAddress).1 }
  /// Nil without TLS.
  open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
    exchange?.connection?.cipher.flatMap { tls_ciphersuite_t(standardName: $0) }
  }
  /// See ``negotiatedTLSCipherSuite``.
  open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
    exchange?.connection?.tlsVersion.map { $0 == .tls13 ? .TLSv13 : .TLSv12 }
  }
  /// False: no interface of Linux says so of itself.
  open var isCellular: Bool { false }
  /// See ``isCellular``.
  open var isExpensive: Bool { false }
  /// See ``isCellular``.
  open var isConstrained: Bool { false }
  /// Whether it went by a proxy, of whatever kind.
  open var isProxyConnection: Bool { isProxied }
  /// Whether an earlier request had opened the connection: then its dates are nil.
  open var isReusedConnection: Bool { exchange?.isReused ?? false }
  /// False: multipath TCP is not used.
  open var isMultipath: Bool { false }
  /// From the network, from the cache, or (`unknown`) from a program's protocol.
  open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { fetchType }
  /// `unknown`: the system's resolver does not tell how it asks.
  open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

  /// Of no request: for subclasses in tests.
  public override init() {
    storedRequest = URLRequest(RequestStorage(url: nil))
    (storedResponse, isProxied, fetchType, start) = (nil, false, .unknown, Date())
    source = .local(end: start, bytes: 0)
  }

  /// For a resource that came from the cache, or from a program's protocol.
  init(
    cached request: URLRequest, response: URLResponse?, start: Date, end: Date, bytes: Int64,
    type: URLSessionTaskMetrics.ResourceFetchType = .localCache
  ) {
    storedRequest = request
    storedResponse = response
    self.start = start
    source = .local(end: end, bytes: bytes)
    isProxied = false
    fetchType = type
  }

  /// - Parameters:
  ///   - start: No date is before it.
  ///   - clock: Makes dates of moments of the loop's clock.
  init(
    _ metrics: ExchangeMetrics, request: URLRequest, response: URLResponse?, isProxied: Bool, bodyBytes: Int64,
    decodedBytes: Int64, start: Date, clock: ClockReading
  ) {
    storedRequest = request
    storedResponse = response
    self.start = start
    source = .network(metrics, clock, bodyBytes: bodyBytes, decodedBytes: decodedBytes)
    self.isProxied = isProxied
    fetchType = .networkLoad
  }

  private struct Dates {
    var fetchStart: Date?
    var lookUpStart: Date?
    var lookUpEnd: Date?
    var connectStart: Date?
    var handshakeStart: Date?
    var handshakeEnd: Date?
    var connectEnd: Date?
    var requestStart: Date?
    var requestEnd: Date?
    var responseStart: Date?
    var responseEnd: Date?
  }

  private var dates: Dates {
    switch source {
    case .local(let end, _):
      return Dates(
        fetchStart: start, requestStart: start, requestEnd: start, responseStart: start, responseEnd: end)
    case .network(let metrics, let clock, _, _):
      // The connection may be older than the request: then its parts are none of this transaction's.
      let connection = metrics.isReused ? nil : metrics.connection
      var latest = start
      // A connection may have been opened for a request that did not wait for it any more, and before this one was
      // made; and the clock of a turn of the loop stands still.
      func following(_ moment: Deadline?) -> Date? {
        guard let date = clock.date(of: moment) else { return nil }
        latest = max(latest, date)
        return latest
      }
      var dates = Dates()
      dates.fetchStart = following(metrics.requested)
      dates.lookUpStart = following(connection?.lookUp?.start)
      dates.lookUpEnd = following(connection?.lookUp?.end)
      dates.connectStart = following(connection?.connect?.start)
      dates.handshakeStart = following(connection?.handshake?.start)
      dates.handshakeEnd = following(connection?.handshake?.end)
      dates.connectEnd = following(connection?.handshake?.end ?? connection?.tunnel?.end ?? connection?.connect?.end)
      dates.requestStart = following(metrics.started)
      // The server may answer before it has the whole request: that is no mistake of the clock.
      dates.requestEnd = clock.date(of: metrics.sent).map { max($0, latest) }
      dates.responseStart = following(metrics.firstByte)
      dates.responseEnd = following(metrics.ended)
      return dates
    }
  }

  private static func parts(_ address: SocketAddress?) -> (String?, String?) {
    guard let address else { return (nil, nil) }
    let text = "\(address)"
    guard address.family != .unix, let colon = text.lastIndex(of: ":") else { return (text, nil) }
    let host = text[..<colon]
    return (host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : String(host), "\(address.port)")
  }
}

/// The loop's clock and the calendar's, read at one moment.
struct ClockReading: Sendable {
  let now: Deadline
  let date: Date

  func date(of moment: Deadline?) -> Date? {
    guard let moment else { return nil }
    // Whichever is later: a duration is never negative.
    return moment > now
      ? date.addingTimeInterval(moment.duration(since: now).interval)
      : date.addingTimeInterval(-now.duration(since: moment).interval)
  }
}
