/// Faults of sending, applied to the bytes just before the socket.
struct SendFault {
  enum ConnectionEnd {
    case stall(TestServer.Signal?)
    case reset
    case close
  }

  /// The maximum number of bytes in one segment.
  var segmentBytesMax = Int.max
  /// The end that is due, and the number of bytes to send before it.
  var cut: (bytesLeft: Int, end: ConnectionEnd)?

  var isActive: Bool { segmentBytesMax < .max || cut != nil }
}
