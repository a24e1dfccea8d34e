/// Reads the dates of `Expires`, which servers write in many forms (RFC 6265bis 5.1.1).
public enum CookieDate {
  public static func parse(_ text: some StringProtocol) -> CookieTime? {
    parse(Array(text.utf8)[...])
  }

  static func parse(_ bytes: ArraySlice<UInt8>) -> CookieTime? {
    var time: Time?
    var day: Int?
    var month: Int?
    var year: Int?
    // The order of the tokens decides: the first number that could be a day is the day.
    for token in bytes.split(whereSeparator: isDelimiter) {
      if time == nil, let found = Time(token) {
        time = found
      } else if day == nil, let found = number(token, digits: 1...2) {
        day = found
      } else if month == nil, let found = self.month(token) {
        month = found
      } else if year == nil, let found = number(token, digits: 2...4) {
        year = found
      }
    }
    guard let time, let day, let month, var year else { return nil }
    switch year {
    case 70...99: year += 1900
    case 0...69: year += 2000
    default: break
    }
    guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59,
      1...daysOf(month: month, year: year) ~= day
    else { return nil }
    let seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return CookieTime(secondsSince1970: Int64(daysSince1970(year, month, day)) * 86_400 + Int64(seconds))
  }

  private struct Time {
    var hour = 0
    var minute = 0
    var second = 0

    /// Reads three fields of one or two digits. The character after the last one, if any, must not be a digit.
    init?(_ token: ArraySlice<UInt8>) {
      var rest = token
      var fields: [Int] = []
      for index in 0..<3 {
        let digits = rest.prefix(while: ASCII.isDigit)
        guard 1...2 ~= digits.count else { return nil }
        fields.append(CookieDate.value(digits))
        rest = rest.dropFirst(digits.count)
        if index < 2 {
          guard rest.first == ASCII.colon else { return nil }
          rest = rest.dropFirst()
        }
      }
      hour = fields[0]
      minute = fields[1]
      second = fields[2]
    }
  }

  private static func isDelimiter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x20...0x2f, 0x3b...0x40, 0x5b...0x60, 0x7b...0x7e: true
    default: false
    }
  }

  /// Returns the value of the digits that the token begins with, or `nil` if their number is not in `count`.
  private static func number(_ token: ArraySlice<UInt8>, digits count: ClosedRange<Int>) -> Int? {
    let digits = token.prefix(while: ASCII.isDigit)
    return count ~= digits.count ? value(digits) : nil
  }

  private static func value(_ digits: ArraySlice<UInt8>) -> Int {
    digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }

  private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"].map {
    Array($0.utf8)
  }

  private static func month(_ token: ArraySlice<UInt8>) -> Int? {
    guard token.count >= 3 else { return nil }
    let start = token.prefix(3).map { $0 | 0x20 }
    return months.firstIndex(of: start).map { $0 + 1 }
  }

  private static func daysOf(month: Int, year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }

  /// Returns the days since 1970 in the Gregorian calendar. Years are counted from March, so that leap days come last.
  private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let marchYear = month > 2 ? year : year - 1
    let marchMonth = (month + 9) % 12
    let dayOfYear = (153 * marchMonth + 2) / 5 + day - 1
    return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
  }
}
