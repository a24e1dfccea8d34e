/// The `Keep-Alive` field (RFC 2068 19.7.1.1, and the forms that servers have sent since).
public enum KeepAlive {
  /// Reads the parameters of a `Keep-Alive` value. Parameters that cannot be read are ignored.
  ///
  /// - Returns: How long the server keeps an idle connection (`timeout`), less a margin, and how many further
  ///   requests it takes on the connection (`max`); `nil` for a missing parameter. The margin is one second, or half
  ///   of a timeout below two seconds: a request that arrives while the server closes the connection is lost.
  public static func parameters(_ value: String) -> (idle: Duration?, requestsLeft: Int?) {
    var idle: Duration?
    var requestsLeft: Int?
    for part in value.utf8.split(separator: ASCII.comma) {
      let pair = part.split(separator: ASCII.equals, maxSplits: 1)
      guard pair.count == 2, let number = number(pair[1]) else { continue }
      switch String(decoding: trimmed(pair[0]), as: UTF8.self).lowercased() {
      case "timeout": idle = .milliseconds(number * 1000 - min(1000, number * 500))
      case "max": requestsLeft = number
      default: continue
      }
    }
    return (idle, requestsLeft)
  }

  /// Reads one to nine decimal digits, with or without quotation marks. Nine digits suffice for thirty years in
  /// seconds.
  private static func number(_ text: Substring.UTF8View) -> Int? {
    var digits = trimmed(text)
    if digits.count >= 2, digits.first == ASCII.quote, digits.last == ASCII.quote {
      digits = digits.dropFirst().dropLast()
    }
    guard 1...9 ~= digits.count, digits.allSatisfy(ASCII.isDigit) else { return nil }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text.drop(while: ASCII.isWhitespace)
    while let last = text.last, ASCII.isWhitespace(last) { text.removeLast() }
    return text
  }
}
