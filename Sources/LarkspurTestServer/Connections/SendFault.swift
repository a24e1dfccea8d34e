/// What goes wrong with bytes on their way to the socket.
struct SendFault {
  enum End {
    case stall(TestServer.Signal?)
    case reset
    case close
  }

  /// The most bytes in one segment.
  var segmentBytesMax = Int.max
  /// How many bytes are sent before it happens.
  var cut: (bytesLeft: Int, end: End)?

  var isActive: Bool { segmentBytesMax < .max || cut != nil }
}
