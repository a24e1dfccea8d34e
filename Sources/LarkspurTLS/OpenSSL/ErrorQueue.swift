/// OpenSSL's error queue, of which each thread has one, and the messages for its entries.
enum ErrorQueue {
  static func clear() { ERR_clear_error() }

  /// Returns the message of the first error, and clears the queue.
  static func takeReason() -> String? {
    let code = ERR_get_error()
    ERR_clear_error()
    return reason(of: code)
  }

  static func reason(of code: UInt) -> String? {
    // Safe: the message is a constant of OpenSSL.
    guard code != 0, let message = unsafe ERR_reason_error_string(code) else { return nil }
    return unsafe String(cString: message)
  }

  static func verificationMessage(_ code: Int32) -> String {
    if code == larkspur_v_key_too_large { return "a key is larger than 8192 bits, or its exponent than 64" }
    // Safe: the message is a constant of OpenSSL.
    return unsafe X509_verify_cert_error_string(Int(code)).map { unsafe String(cString: $0) } ?? ""
  }
}
