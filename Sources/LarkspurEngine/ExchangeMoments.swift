import LarkspurBytes
import LarkspurTransport

/// The moments of one attempt to send a request, as a program gets them: they do not decrease, except that the response
/// may start before the request's end. `nil` for events that have not occurred, and for the connection's parts if the
/// connection has served an earlier request.
package struct ExchangeMoments: Sendable {
  package private(set) var fetchStart: Deadline?
  package private(set) var lookUpStart: Deadline?
  package private(set) var lookUpEnd: Deadline?
  package private(set) var connectStart: Deadline?
  package private(set) var handshakeStart: Deadline?
  package private(set) var handshakeEnd: Deadline?
  package private(set) var connectEnd: Deadline?
  package private(set) var requestStart: Deadline?
  package private(set) var requestEnd: Deadline?
  package private(set) var responseStart: Deadline?
  package private(set) var responseEnd: Deadline?

  package init(_ metrics: ExchangeMetrics) {
    // A reused connection is older than the request: its moments do not belong to this attempt.
    let connection = metrics.isReused ? nil : metrics.connection
    var latest = metrics.requested
    // A connection may have been opened before this request was made, for a request that no longer waited; and the loop reads
    // its clock once per tick.
    func following(_ moment: Deadline?) -> Deadline? {
      guard let moment else { return nil }
      latest = max(latest, moment)
      return latest
    }
    fetchStart = metrics.requested
    lookUpStart = following(connection?.lookUp?.start)
    lookUpEnd = following(connection?.lookUp?.end)
    connectStart = following(connection?.connect?.start)
    handshakeStart = following(connection?.handshake?.start)
    handshakeEnd = following(connection?.handshake?.end)
    connectEnd = following(connection?.handshake?.end ?? connection?.tunnel?.end ?? connection?.connect?.end)
    requestStart = following(metrics.started)
    // The server may answer before it has the whole request, so `sent` does not move later moments.
    requestEnd = metrics.sent.map { max($0, latest) }
    responseStart = following(metrics.firstByte)
    responseEnd = following(metrics.ended)
  }
}
