import LarkspurBytes

/// When the parts of an exchange began and ended, and how much went over the wire: plain values, read from the clock of
/// the loop's turns.
public struct ExchangeMetrics: Sendable {
  /// When a connection was asked for.
  public var requested: Deadline
  /// When the request was handed to the connection. Nil, here and below: it did not come to that.
  public var started: Deadline?
  /// When the kernel had taken the last byte of the request.
  public var sent: Deadline?
  /// When the first byte of the response came: of an interim one, if there was one.
  public var firstByte: Deadline?
  /// When the response was complete.
  public var ended: Deadline?
  public var requestHeadBytes = 0
  /// With what the chunked coding adds.
  public var requestBodyBytes = 0
  /// With the heads of interim responses.
  public var responseHeadBytes = 0
  /// With what the chunked coding adds.
  public var responseBodyBytes = 0
  /// Whether the connection had served before.
  public var isReused = false
  /// Of all exchanges of a connection the same: shared, because it is large to copy.
  var opening: OpeningMetrics?
  /// How the connection came to be: perhaps long before, and for another request. Nil: there was none.
  public var connection: ConnectionMetrics? { opening?.metrics }

  public init(requested: Deadline) { self.requested = requested }
}

/// A connection's metrics when it has been opened, or could not be.
final class OpeningMetrics: Sendable {
  let metrics: ConnectionMetrics

  init(_ metrics: ConnectionMetrics) { self.metrics = metrics }
}

/// What a connection's core writes down of the present exchange.
struct ExchangeRecord {
  var started = Deadline.never
  var sent = Deadline.never
  var firstByte = Deadline.never
  var ended = Deadline.never
  var requestHeadBytes = 0
  var requestBodyBytes = 0
  /// Those of the body that the chunked coding has added.
  var requestCodingBytes = 0
  var responseHeadBytes = 0
  /// Of the whole response, as far as it has been counted: the head is, with what comes next.
  var receivedBytes = 0

  /// Whether anything of the response has come.
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
