/// Formats numbers and texts for human readers.
///
/// Performance: Foundation's formatters would cost more at start than a whole request.
package enum Format {
  /// Formats a number, rounded to this many digits behind the point.
  package static func decimal(_ value: Double, digits: Int = 1) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "?" }
    let scale = (0..<digits).reduce(1.0) { power, _ in power * 10 }
    let scaled = Int((value.magnitude * scale).rounded())
    let (whole, fraction) = scaled.quotientAndRemainder(dividingBy: Int(scale))
    let sign = value < 0 && scaled != 0 ? "-" : ""
    return sign + "\(whole)" + (digits > 0 ? "." + padded("\(fraction)", to: digits, with: "0", atEnd: false) : "")
  }

  package static func milliseconds(_ duration: Duration) -> Double { duration / .milliseconds(1) }

  package static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

  /// Formats a number in groups of three digits: `1,234,567`.
  package static func grouped(_ number: Int) -> String {
    var digits = String(number.magnitude)[...]
    var groups: [Substring] = []
    while digits.count > 3 {
      groups.insert(digits.suffix(3), at: 0)
      digits = digits.dropLast(3)
    }
    return (number < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
  }

  /// Formats a number of bytes: `512 B`, `1.5 KiB`, `64.0 MiB`.
  package static func bytes(_ count: Double) -> String {
    guard count >= 1023.5 else { return decimal(count, digits: 0) + " B" }
    var value = count
    var unit = "B"
    // A value from 1,023.95 on would be rounded to 1024.0.
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] where value >= 1023.95 || unit == "B" {
      value /= 1024
      unit = next
    }
    return decimal(value) + " " + unit
  }

  package static func bytes(_ count: Int) -> String { bytes(Double(count)) }

  /// Formats a duration: `0.4 ms`, `12 ms`, `1.25 s`.
  package static func time(_ duration: Duration) -> String {
    let milliseconds = milliseconds(duration)
    if milliseconds < 10 { return decimal(milliseconds) + " ms" }
    if milliseconds < 1000 { return decimal(milliseconds, digits: 0) + " ms" }
    return decimal(milliseconds / 1000, digits: 2) + " s"
  }

  /// Formats the day, in UTC, of a time in seconds since 1970: `2026-11-21`.
  package static func date(_ seconds: Int64) -> String {
    guard seconds >= -62_135_596_800, seconds < 253_402_300_800 else { return "?" }
    // Years begin in March in this calculation, so that a leap day is the last day of its year.
    let days = seconds / 86400 - (seconds % 86400 < 0 ? 1 : 0) + 719_468
    let (era, day) = (days / 146_097, days % 146_097)
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365
    let dayOfYear = day - (365 * year + year / 4 - year / 100)
    let month = (5 * dayOfYear + 2) / 153
    let numbers = [
      (year + era * 400 + (month < 10 ? 0 : 1), 4), (month < 10 ? month + 3 : month - 9, 2),
      (dayOfYear - (153 * month + 2) / 5 + 1, 2),
    ]
    return numbers.map { padded("\($0)", to: $1, with: "0", atEnd: false) }.joined(separator: "-")
  }

  /// Formats a duration as on a clock: `0:07`, `12:34`, `1:02:03`.
  package static func clock(_ duration: Duration) -> String {
    let seconds = max(Int(duration.components.seconds), 0)
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600)
    let tail = padded("\(seconds % 60)", to: 2, with: "0", atEnd: false)
    guard hours > 0 else { return "\(minutes):\(tail)" }
    return "\(hours):\(padded("\(minutes)", to: 2, with: "0", atEnd: false)):\(tail)"
  }

  package static func padded(
    _ text: String, to width: Int, with filler: Character = " ", atEnd: Bool = true
  ) -> String {
    let padding = String(repeating: filler, count: max(width - text.count, 0))
    return atEnd ? text + padding : padding + text
  }

  /// Formats bytes as hexadecimal digits, sixteen bytes a line.
  package static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    var count = 0
    for byte in bytes {
      if count > 0 { text.append(UInt8(ascii: count % 16 == 0 ? "\n" : " ")) }
      text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      count += 1
    }
    text.append(UInt8(ascii: "\n"))
    return String(decoding: text, as: UTF8.self)
  }

  /// Makes text from a peer safe for a terminal: hidden characters become text such as `\x1b` and `\u{202e}`.
  package static func visible(_ bytes: some Sequence<UInt8>) -> String {
    var text = ""
    for scalar in String(decoding: Array(bytes), as: UTF8.self).unicodeScalars {
      if scalar == "\t" || !isHidden(scalar) {
        text.unicodeScalars.append(scalar)
      } else {
        let digits = padded(String(scalar.value, radix: 16), to: 2, with: "0", atEnd: false)
        text += scalar.value < 0x100 ? "\\x\(digits)" : "\\u{\(digits)}"
      }
    }
    return text
  }

  /// Whether a character is not seen itself, but may change the text around it: control and format characters
  /// (controls of direction, zero-width characters, tags), separators of lines and paragraphs, and all others that
  /// Unicode asks to ignore, except the selectors between text and emoji.
  package static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    guard scalar.value >= 0x7f else { return scalar.value < 0x20 }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: scalar.properties.isDefaultIgnorableCodePoint && !(0xfe00...0xfe0f).contains(scalar.value)
    }
  }

  /// Formats a string of JSON (RFC 8259 7). All hidden characters are escaped, also those that JSON allows.
  package static func json(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where isHidden(scalar):
        for unit in String(scalar).utf16 {
          result += "\\u" + padded(String(unit, radix: 16), to: 4, with: "0", atEnd: false)
        }
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
