/// The `Keep-Alive` field (RFC 2068 19.7.1.1, and what servers send since).
public enum KeepAlive {
  /// How long the server keeps an idle connection, less a margin, and how many requests it still takes. What cannot be
  /// read is not there.
  ///
  /// A request that arrives when the server is just closing is lost: the margin is a second, or half of a shorter time.
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

  /// Decimal digits, perhaps in quotation marks. Nine of them are thirty years.
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
