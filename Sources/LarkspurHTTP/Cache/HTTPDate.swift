/// Reads and writes the dates of HTTP (RFC 9110 5.6.7).
///
/// The three forms are read strictly, except for the case of letters. A date that cannot be read makes a response
/// stale; a guess could keep a response that its server has meant to expire.
public enum HTTPDate {
  /// Returns the time in seconds since 1970, or `nil` if the text is not a date.
  ///
  /// - Parameter now: The current time in seconds since 1970, which determines the century of a year with two digits.
  public static func parse(_ text: String, now: Double) -> Double? {
    var reader = Reader(bytes: Array(text.utf8))
    guard let word = reader.letters() else { return nil }
    if reader.skip(", ") {
      if days.contains(word) { return reader.fixdate() }
      return fullDays.contains(word) ? reader.rfc850(now: now) : nil
    }
    return days.contains(word) && reader.skip(" ") ? reader.asctime() : nil
  }

  /// Returns the date in the form `Sun, 06 Nov 1994 08:49:37 GMT`. A time outside the years 0 to 9999 is moved to the
  /// nearest one inside.
  public static func format(_ seconds: Double) -> String {
    let whole = seconds.isNaN ? 0 : Int64(min(max(seconds.rounded(.down), -62_167_219_200), 253_402_300_799))
    let (day, second) = whole.quotientAndRemainderFlooring(by: 86_400)
    let (year, month, dayOfMonth) = civil(day)
    let weekday = Int((day + 4).quotientAndRemainderFlooring(by: 7).remainder)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let padded = String(repeating: "0", count: max(0, 4 - "\(year)".count)) + "\(year)"
    let names = [capitalised(days[weekday]), capitalised(months[month - 1])]
    let time = "\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60))"
    return "\(names[0]), \(two(Int64(dayOfMonth))) \(names[1]) \(padded) \(time) GMT"
  }

  fileprivate static let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
  fileprivate static let fullDays = [
    "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
  ]
  fileprivate static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]

  private static func capitalised(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }

  /// Returns the days since 1970 of a date in the Gregorian calendar. Years are counted from March.
  fileprivate static func day(year: Int, month: Int, day: Int) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = Int64(shifted).quotientAndRemainderFlooring(by: 400)
    let monthFromMarch = (month + 9) % 12
    let dayOfYear = Int64((153 * monthFromMarch + 2) / 5 + day - 1)
    let dayOfEra = era.remainder * 365 + era.remainder / 4 - era.remainder / 100 + dayOfYear
    return era.quotient * 146_097 + dayOfEra - 719_468
  }

  private static func civil(_ day: Int64) -> (year: Int64, month: Int, day: Int) {
    let era = (day + 719_468).quotientAndRemainderFlooring(by: 146_097)
    let dayOfEra = era.remainder
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = Int(monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9)
    let year = era.quotient * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    return (year, month, Int(dayOfYear - (153 * monthFromMarch + 2) / 5 + 1))
  }

  private struct Reader {
    var bytes: [UInt8]
    var position = 0

    mutating func letters() -> String? {
      let start = position
      while position < bytes.count, (bytes[position] | 0x20) &- UInt8(ascii: "a") < 26 { position += 1 }
      return start == position
        ? nil : String(decoding: bytes[start..<position].map { $0 | 0x20 }, as: UTF8.self)
    }

    mutating func skip(_ text: String) -> Bool {
      let word = Array(text.utf8)
      guard bytes.count - position >= word.count, bytes[position..<(position + word.count)].elementsEqual(word) else {
        return false
      }
      position += word.count
      return true
    }

    mutating func number(digits: Int) -> Int? {
      guard bytes.count - position >= digits else { return nil }
      var number = 0
      for byte in bytes[position..<(position + digits)] {
        guard ASCII.isDigit(byte) else { return nil }
        number = number * 10 + Int(byte - UInt8(ascii: "0"))
      }
      position += digits
      return number
    }

    mutating func month() -> Int? {
      guard let word = letters(), let index = HTTPDate.months.firstIndex(of: word) else { return nil }
      return index + 1
    }

    mutating func time() -> Int? {
      guard let hour = number(digits: 2), skip(":"), let minute = number(digits: 2), skip(":"),
        let second = number(digits: 2), hour < 24, minute < 60, second < 61
      else { return nil }
      return hour * 3600 + minute * 60 + second
    }

    /// Reads ` GMT` at the end of the text.
    mutating func zone() -> Bool {
      guard skip(" "), letters() == "gmt" else { return false }
      return position == bytes.count
    }

    /// Reads `06 Nov 1994 08:49:37 GMT`.
    mutating func fixdate() -> Double? {
      guard let day = number(digits: 2), skip(" "), let month = month(), skip(" "), let year = number(digits: 4),
        skip(" "), let time = time(), zone()
      else { return nil }
      return seconds(year, month, day, time)
    }

    /// Reads `06-Nov-94 08:49:37 GMT`. A year more than 50 years ahead counts as the latest past year with these two
    /// digits.
    mutating func rfc850(now: Double) -> Double? {
      guard let day = number(digits: 2), skip("-"), let month = month(), skip("-"), let year = number(digits: 2),
        skip(" "), let time = time(), zone(), now.isFinite, abs(now) < 1e11
      else { return nil }
      let thisYear = Int(HTTPDate.civil(Int64((now / 86_400).rounded(.down))).year)
      var full = thisYear - thisYear % 100 + year
      if full > thisYear + 50 { full -= 100 }
      return seconds(full, month, day, time)
    }

    /// Reads `Nov  6 08:49:37 1994`.
    mutating func asctime() -> Double? {
      guard let month = month(), skip(" "), let day = skip(" ") ? number(digits: 1) : number(digits: 2), skip(" "),
        let time = time(), skip(" "), let year = number(digits: 4), position == bytes.count
      else { return nil }
      return seconds(year, month, day, time)
    }

    private func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Double? {
      let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
      let longest = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
      guard 1...longest ~= day else { return nil }
      return Double(HTTPDate.day(year: year, month: month, day: day) * 86_400 + Int64(time))
    }
  }
}

extension Int64 {
  /// Rounds the quotient down, so that the remainder is never negative.
  fileprivate func quotientAndRemainderFlooring(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
