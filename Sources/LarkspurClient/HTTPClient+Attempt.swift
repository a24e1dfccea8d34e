import LarkspurBytes
import LarkspurEngine
import LarkspurTLS
import LarkspurTransport
import Synchronization

extension HTTPClient {
  /// The recorder of a request's attempts: see ``Request/recorder``. Any thread may read it.
  public final class Recorder: Sendable {
    private let recorded = Mutex<[Attempt]>([])

    /// Creates a recorder without attempts. One recorder may serve several requests.
    public init() {}

    /// The attempts that are over, in their order: their responses have been received or dropped, or they have failed.
    /// After ``HTTPClient/perform(_:_:)`` all attempts are over.
    public var attempts: [Attempt] { recorded.withLock { $0 } }

    func add(_ attempts: [Attempt]) { recorded.withLock { $0 += attempts } }
  }

  /// One attempt to send a request. Redirections, challenges and repetitions on a new connection are attempts, too.
  ///
  /// Each time counts from the call, on a clock that is not set, and is `nil` for events that have not occurred. A
  /// request on a connection that has served an earlier one has no times of the connection.
  public struct Attempt: Sendable {
    /// The request's method.
    public let method: String
    /// The request's URL: after a redirection, the next one.
    public let url: String
    /// The status of the response, or `nil` if the attempt got none.
    public let status: Int?
    /// Whether the request went through a proxy of any kind.
    public var isProxied: Bool { metrics.connection?.isProxied == true }
    /// The number of bytes of the response's body that were received and decoded. The program may have read fewer.
    public let contentBytes: Int

    /// The time at which the request was queued for a connection.
    public var fetchStart: Duration? { time(moments.fetchStart) }
    /// The start of the look-up of the host's addresses, or of the proxy's.
    public var lookUpStart: Duration? { time(moments.lookUpStart) }
    /// The end of the look-up.
    public var lookUpEnd: Duration? { time(moments.lookUpEnd) }
    /// The start of connecting, which ends at `connectEnd` and includes the TLS handshake.
    public var connectStart: Duration? { time(moments.connectStart) }
    /// The start of the TLS handshake.
    public var handshakeStart: Duration? { time(moments.handshakeStart) }
    /// The end of the TLS handshake.
    public var handshakeEnd: Duration? { time(moments.handshakeEnd) }
    /// The time at which the connection could take a request.
    public var connectEnd: Duration? { time(moments.connectEnd) }
    /// The time at which the request was handed to the connection.
    public var requestStart: Duration? { time(moments.requestStart) }
    /// The time at which the kernel had taken the last byte of the request. The response may have started earlier.
    public var requestEnd: Duration? { time(moments.requestEnd) }
    /// The time of the response's first byte.
    public var responseStart: Duration? { time(moments.responseStart) }
    /// The time of the response's last byte.
    public var responseEnd: Duration? { time(moments.responseEnd) }

    /// The number of bytes sent for the request's head.
    public var requestHeadBytes: Int { metrics.requestHeadBytes }
    /// The number of bytes sent for the request's body, including the chunked coding.
    public var requestBodyBytes: Int { metrics.requestBodyBytes }
    /// The number of bytes received for the response's head, including interim responses.
    public var responseHeadBytes: Int { metrics.responseHeadBytes }
    /// The number of bytes received for the response's body, with its codings.
    public var responseBodyBytes: Int { metrics.responseBodyBytes }

    /// Whether the connection had served an earlier request.
    public var isReused: Bool { metrics.isReused }
    /// The address and port of the server or the proxy.
    public var remoteAddress: String? { metrics.connection?.remoteAddress.map { "\($0)" } }
    /// The address and port of this end of the connection.
    public var localAddress: String? { metrics.connection?.localAddress.map { "\($0)" } }
    /// The version of TLS, or `nil` without TLS.
    public var tlsVersion: TLSVersion? { metrics.connection?.tlsVersion }
    /// The cipher suite by its name in the RFCs, or `nil` without TLS.
    public var cipher: String? { metrics.connection?.cipher }

    private let metrics: ExchangeMetrics
    private let moments: ExchangeMoments
    private let start: Deadline

    init(
      _ metrics: ExchangeMetrics, of request: Request, status: Int?, contentBytes: Int,
      since start: Deadline
    ) {
      self.metrics = metrics
      moments = ExchangeMoments(metrics)
      self.start = start
      method = request.method
      url = request.url
      self.status = status
      self.contentBytes = contentBytes
    }

    private func time(_ moment: Deadline?) -> Duration? { moment.map { $0.duration(since: start) } }
  }
}
