import LarkspurBytes

/// The content of a Close frame: a code and a reason, or neither (RFC 6455 5.5.1). Its values can be sent.
package struct WebSocketClose: Hashable, Sendable {
  /// The code, or `nil` if the frame is empty, which means 1005 to a program (RFC 6455 7.1.5).
  package let code: UInt16?
  /// The reason in UTF-8. Empty without a code.
  package let reason: [UInt8]

  /// Maximum size of a reason in bytes: the payload of a control frame without the code.
  package static let reasonBytesMax = WebSocketFrameHeader.controlBytesMax - 2

  /// A Close without a code.
  package static let empty = WebSocketClose(unchecked: nil, [])

  private init(unchecked code: UInt16?, _ reason: [UInt8]) {
    self.code = code
    self.reason = reason
  }

  /// Creates a Close from a code of this module.
  init(failure code: UInt16) { self.init(unchecked: code, []) }

  /// Creates a Close from a caller's values. A code that may not be sent is left out, and the reason with it. A
  /// long reason, or one with bytes that are not UTF-8, is cut behind its last whole character that fits.
  package init(fitting code: UInt16?, reason: [UInt8] = []) {
    guard let code, Self.mayBeSent(code) else {
      self = .empty
      return
    }
    var validator = UTF8Validator()
    var end = 0
    for index in 0..<min(reason.count, Self.reasonBytesMax) {
      guard validator.accept(reason.span.extracting(index..<index + 1)) else { break }
      if validator.isComplete { end = index + 1 }
    }
    self.init(unchecked: code, Array(reason[..<end]))
  }

  /// Reads the payload of a Close frame.
  package init(payload: [UInt8]) throws(WebSocketError) {
    guard !payload.isEmpty else {
      self = .empty
      return
    }
    guard payload.count > 1 else { throw .closeTooShort }
    let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
    guard Self.mayBeSent(code) else { throw .closeCodeInvalid(code) }
    let reason = Array(payload[2...])
    var validator = UTF8Validator()
    guard validator.accept(reason.span), validator.isComplete else { throw .invalidUTF8 }
    self.init(unchecked: code, reason)
  }

  /// The payload of the Close frame.
  package var payload: [UInt8] {
    guard let code else { return [] }
    return [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)] + reason
  }

  /// Whether a code may stand in a Close frame: the registered ones that are not reserved for programs, and those of
  /// libraries and applications (RFC 6455 7.4, and the registry's 1012 to 1014).
  package static func mayBeSent(_ code: UInt16) -> Bool {
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}
