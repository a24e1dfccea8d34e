import LarkspurIO
import LarkspurTransport

/// Whole bodies, read by a task.
extension Exchange {
  /// Receives the body to its end and throws it away.
  package func discardBody() async throws(TransportError) {
    while try await receiveData({ _ in }), isReceiving {}
  }

  /// Writes the body into a regular file.
  ///
  /// - Parameter progress: Called with the number of bytes written so far.
  /// - Returns: The number of bytes written.
  package func receiveBody(
    into file: OpenFile, progress: (Int) -> Void = { _ in }
  ) async throws(TransportError) -> Int {
    var total = 0
    repeat {
      let count = try await TaskCallback.awaiting { (callback) throws(TransportError) in
        try takeData(into: file, for: callback)
      }
      guard count > 0 else { break }
      total += count
      progress(total)
    } while isReceiving
    return total
  }
}
