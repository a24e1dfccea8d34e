import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// The metrics of one request and its response. The date of an event that did not happen is `nil`: for a request on a
/// reused connection, all dates of the connection are `nil`. Immutable, and for any thread.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
  /// The request as the program or a redirection made it, without the fields that the session adds.
  open var request: URLRequest { storedRequest }
  /// The response, or `nil` if none has arrived.
  open var response: URLResponse? { storedResponse }

  // Performance: the other values are computed when they are read, because most programs read no metrics.
  private let source: Source
  private let start: Date
  private let storedRequest: URLRequest
  private let storedResponse: URLResponse?
  private let isProxied: Bool
  private let fetchType: URLSessionTaskMetrics.ResourceFetchType

  private enum Source: Sendable {
    /// The cache, a `URLProtocol`, a file or the URL itself: the end of the load, and the number of bytes.
    case local(end: Date, bytes: Int64)
    case network(ExchangeMetrics, ClockReading, bodyBytes: Int64, decodedBytes: Int64)
  }

  private var exchange: ExchangeMetrics? { if case .network(let metrics, _, _, _) = source { metrics } else { nil } }

  /// The time at which the request was queued for a connection. For a resource that came without a connection, the
  /// start of reading it.
  open var fetchStartDate: Date? { dates.fetchStart }
  /// The start of the look-up of the host's addresses, or of the proxy's.
  open var domainLookupStartDate: Date? { dates.lookUpStart }
  /// The end of the look-up of the host's addresses, or of the proxy's.
  open var domainLookupEndDate: Date? { dates.lookUpEnd }
  /// The start of connecting. Connecting ends at `connectEndDate` and includes the TLS handshake.
  open var connectStartDate: Date? { dates.connectStart }
  /// The start of the TLS handshake. `nil` without TLS.
  open var secureConnectionStartDate: Date? { dates.handshakeStart }
  /// The end of the TLS handshake. `nil` without TLS.
  open var secureConnectionEndDate: Date? { dates.handshakeEnd }
  /// The time at which the connection could take a request.
  open var connectEndDate: Date? { dates.connectEnd }
  /// The time at which the request was handed to the connection. For a resource that came without a connection, such as
  /// one from the cache, the start of reading it.
  open var requestStartDate: Date? { dates.requestStart }
  /// The time at which the kernel had taken the last byte of the request. The response may have started earlier, if the
  /// server answers while it reads. For a resource that came without a connection, the start of reading it.
  open var requestEndDate: Date? { dates.requestEnd }
  /// The time at which the first byte of the response arrived. For a resource that came without a connection, the start
  /// of reading it.
  open var responseStartDate: Date? { dates.responseStart }
  /// The time at which the last byte of the response arrived.
  open var responseEndDate: Date? { dates.responseEnd }

  /// The size of the request's body, in bytes. Larkspur puts no content coding on a body, so this and
  /// ``countOfRequestBodyBytesSent`` differ only by the chunked coding.
  open var countOfRequestBodyBytesBeforeEncoding: Int64 {
    if case .network(_, _, let bodyBytes, _) = source { bodyBytes } else { 0 }
  }
  /// The number of bytes sent for the request's body, including the chunked coding.
  open var countOfRequestBodyBytesSent: Int64 { Int64(exchange?.requestBodyBytes ?? 0) }
  /// The number of bytes sent for the request's head, including the request line.
  open var countOfRequestHeaderBytesSent: Int64 { Int64(exchange?.requestHeadBytes ?? 0) }
  /// The size of the content in bytes, as the task has received it: without content coding.
  open var countOfResponseBodyBytesAfterDecoding: Int64 {
    switch source {
    case .local(_, let bytes): bytes
    case .network(_, _, _, let decodedBytes): decodedBytes
    }
  }
  /// The number of bytes received for the response's body, as they came over the wire.
  open var countOfResponseBodyBytesReceived: Int64 { Int64(exchange?.responseBodyBytes ?? 0) }
  /// The number of bytes received for the response's head, including the status line and the heads of interim
  /// responses.
  open var countOfResponseHeaderBytesReceived: Int64 { Int64(exchange?.responseHeadBytes ?? 0) }

  /// The protocol of the response: `http/1.1`, or `http/1.0` if the server answers with that version. `nil` if there is
  /// no response, or if it came without a connection.
  open var networkProtocolName: String? {
    exchange == nil ? nil : (response as? HTTPURLResponse)?.httpVersion.lowercased()
  }
  /// The address of the server or the proxy, without brackets. Address and port are text, as in FoundationNetworking;
  /// on Darwin the port is a number.
  open var remoteAddress: String? { Self.parts(exchange?.connection?.remoteAddress).0 }
  /// The port of the server or the proxy, in decimal. See ``remoteAddress``.
  open var remotePort: String? { Self.parts(exchange?.connection?.remoteAddress).1 }
  /// The address of this end of the connection, without brackets.
  open var localAddress: String? { Self.parts(exchange?.connection?.localAddress).0 }
  /// The port of this end of the connection, in decimal.
  open var localPort: String? { Self.parts(exchange?.connection?.localAddress).1 }
  /// The cipher suite of the connection. `nil` without TLS.
  open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
    exchange?.connection?.cipher.flatMap { tls_ciphersuite_t(standardName: $0) }
  }
  /// The TLS version of the connection. `nil` without TLS.
  open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
    exchange?.connection?.tlsVersion.map { $0 == .tls13 ? .TLSv13 : .TLSv12 }
  }
  /// Whether the connection used a cellular interface. Always `false`: Linux does not report this of an interface.
  open var isCellular: Bool { false }
  /// Whether the connection used an expensive interface. Always `false`: Linux does not report this of an interface.
  open var isExpensive: Bool { false }
  /// Whether the connection used a constrained interface. Always `false`: Linux does not report this of an interface.
  open var isConstrained: Bool { false }
  /// Whether the request went through a proxy of any kind.
  open var isProxyConnection: Bool { isProxied }
  /// Whether the connection had already carried an earlier request. If so, the dates of the connection are `nil`.
  open var isReusedConnection: Bool { exchange?.isReused ?? false }
  /// Whether the connection used multipath TCP (RFC 8684): see ``URLSessionConfiguration/multipathServiceType``.
  open var isMultipath: Bool { exchange?.connection?.isMultipath ?? false }
  /// The source of the resource: a server, the cache, or another source (`unknown`).
  open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType { fetchType }
  /// The protocol of the look-up of the host's name. Always `unknown`: the system's resolver does not report it.
  open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol { .unknown }

  /// Creates metrics without a request, for subclasses in tests.
  public override init() {
    storedRequest = URLRequest(RequestStorage(url: nil))
    (storedResponse, isProxied, fetchType, start) = (nil, false, .unknown, Date())
    source = .local(end: start, bytes: 0)
  }

  /// Creates the metrics of a resource that came without a connection.
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

  /// Creates the metrics of a request to a server.
  ///
  /// - Parameters:
  ///   - start: The earliest possible date.
  ///   - clock: Converts times of the loop's clock to dates.
  init(
    _ metrics: ExchangeMetrics, request: URLRequest, response: URLResponse?, bodyBytes: Int64, decodedBytes: Int64,
    start: Date, clock: ClockReading
  ) {
    storedRequest = request
    storedResponse = response
    self.start = start
    source = .network(metrics, clock, bodyBytes: bodyBytes, decodedBytes: decodedBytes)
    isProxied = metrics.connection?.isProxied == true
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
      let moments = ExchangeMoments(metrics)
      func date(_ moment: Deadline?) -> Date? { clock.date(of: moment).map { max($0, start) } }
      return Dates(
        fetchStart: date(moments.fetchStart), lookUpStart: date(moments.lookUpStart),
        lookUpEnd: date(moments.lookUpEnd), connectStart: date(moments.connectStart),
        handshakeStart: date(moments.handshakeStart), handshakeEnd: date(moments.handshakeEnd),
        connectEnd: date(moments.connectEnd), requestStart: date(moments.requestStart),
        requestEnd: date(moments.requestEnd), responseStart: date(moments.responseStart),
        responseEnd: date(moments.responseEnd))
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

/// One moment on the loop's clock and on the calendar.
struct ClockReading: Sendable {
  let now: Deadline
  let date: Date

  func date(of moment: Deadline?) -> Date? {
    guard let moment else { return nil }
    // `duration(since:)` is never negative: the later moment comes first.
    return moment > now
      ? date.addingTimeInterval(moment.duration(since: now).interval)
      : date.addingTimeInterval(-now.duration(since: moment).interval)
  }
}
