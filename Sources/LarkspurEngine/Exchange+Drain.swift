import LarkspurBytes
import LarkspurTransport

extension Exchange {
  /// How much of an unwanted response is read, so that its connection can serve the next request. To read more would
  /// cost more than a new connection.
  package static let drainBytesMax = 64 * 1024

  /// Reads the rest of an unwanted response, if there is little of it and it comes soon. Call it on the loop.
  ///
  /// - Parameter consume: Called with each piece.
  /// - Returns: Whether that was all.
  package func drain(
    on loop: ClientLoop, _ consume: (Span<UInt8>) -> Void = { _ in }
  ) async throws(TransportError) -> Bool {
    guard isReceiving else { return true }
    let canceller = canceller
    let timer = loop.startTimer(loop.now.advanced(by: Exchange.drainTimeMax)) { canceller?.cancel() }
    defer { loop.stopTimer(timer) }
    var count = 0
    while count <= Self.drainBytesMax, isReceiving,
      try await receiveData({ piece in
        count += piece.count
        consume(piece)
      })
    {}
    return count <= Self.drainBytesMax
  }
}
