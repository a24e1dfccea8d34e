import LarkspurBytes

/// The times of the parts of an exchange, and the numbers of bytes transferred. The times are the starts of the loop's
/// ticks.
public struct ExchangeMetrics: Sendable {
  /// The time at which a connection was requested.
  public var requested: Deadline
  /// The time at which the request was handed to the connection. This and the times below are `nil` if the exchange did
  /// not get that far.
  public var started: Deadline?
  /// The time at which the kernel had taken the last byte of the request.
  public var sent: Deadline?
  /// The time of the first byte of the response, or of the first interim response if there was one.
  public var firstByte: Deadline?
  /// The time at which the response was complete.
  public var ended: Deadline?
  public var requestHeadBytes = 0
  /// Includes the chunked coding.
  public var requestBodyBytes = 0
  /// Includes the heads of interim responses.
  public var responseHeadBytes = 0
  /// Includes the chunked coding.
  public var responseBodyBytes = 0
  /// Whether the connection had served another request before.
  public var isReused = false
  /// The metrics of opening the connection. Performance: shared by all exchanges of the connection, because they are
  /// large to copy.
  var opening: OpeningMetrics?
  /// The metrics of opening the connection, perhaps long before and for another request, or `nil` if none were
  /// recorded.
  public var connection: ConnectionMetrics? { opening?.metrics }

  public init(requested: Deadline) { self.requested = requested }
}

/// The boxed metrics of a connection that has been opened or has failed.
final class OpeningMetrics: Sendable {
  let metrics: ConnectionMetrics

  init(_ metrics: ConnectionMetrics) { self.metrics = metrics }
}

/// The record of the current exchange in a connection's core.
struct ExchangeRecord {
  var started = Deadline.never
  var sent = Deadline.never
  var firstByte = Deadline.never
  var ended = Deadline.never
  var requestHeadBytes = 0
  var requestBodyBytes = 0
  /// The bytes that the chunked coding has added to the body.
  var requestCodingBytes = 0
  var responseHeadBytes = 0
  /// The bytes of the whole response that have been counted so far, heads included. Parsed bytes are counted when they
  /// are dropped from the input chunk.
  var receivedBytes = 0

  /// Whether any byte of the response has arrived.
  var hasFirstByte: Bool { firstByte != .never }

  func metrics(requested: Deadline?) -> ExchangeMetrics {
    var metrics = ExchangeMetrics(requested: requested ?? started)
    metrics.started = started.orNil
    metrics.sent = sent.orNil
    metrics.firstByte = firstByte.orNil
    metrics.ended = ended.orNil
    metrics.requestHeadBytes = requestHeadBytes
    metrics.requestBodyBytes = requestBodyBytes
    metrics.responseHeadBytes = responseHeadBytes
    metrics.responseBodyBytes = max(0, receivedBytes - responseHeadBytes)
    return metrics
  }
}

extension Deadline {
  fileprivate var orNil: Deadline? { self == .never ? nil : self }
}
