/// The constants of permessage-deflate (RFC 7692, section 7), the compression of WebSocket messages.
package enum MessageDeflate {
  /// The sizes of windows that the peers can agree on, as exponents of two (section 7.1.2).
  package static let windowBits = 8...15

  /// The end of an empty stored block, which a sender removes from each message and a receiver appends to it (sections
  /// 7.2.1 and 7.2.2).
  static let tail: [UInt8] = [0, 0, 0xff, 0xff]
}
