import CLarkspurOpenSSL

/// OpenSSL's queue of errors, one per thread, and the words for what stands in it.
enum ErrorQueue {
  static func clear() { ERR_clear_error() }

  /// The first error's words. The queue is empty afterwards.
  static func takeReason() -> String? {
    let code = ERR_get_error()
    ERR_clear_error()
    return reason(of: code)
  }

  static func reason(of code: UInt) -> String? {
    // Safe: the words are OpenSSL's own and live for ever.
    guard code != 0, let words = unsafe larkspur_error_reason(code) else { return nil }
    return unsafe String(cString: words)
  }

  /// What the system's error number means.
  static func words(ofSystem number: Int32) -> String? {
    // Safe: the words are the C library's own and live for ever.
    guard let words = unsafe larkspur_system_error_words(number) else { return nil }
    return unsafe String(cString: words)
  }

  static func verificationWords(_ code: Int32) -> String {
    // Safe: the words are OpenSSL's own and live for ever.
    unsafe String(cString: X509_verify_cert_error_string(Int(code)))
  }
}
