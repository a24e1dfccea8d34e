import Foundation

/// The text of a progress bar's line.
enum ProgressLine {
  private static let barColumnsMax = 40
  private static let barColumnsMin = 8

  /// Returns the line for a width of `columns`. The bar gets the columns that the text leaves free, and is omitted if
  /// these are fewer than `barColumnsMin`.
  static func text(label: String, share: Float, numbers: String, columns: Int) -> String {
    // Rounded down, so that 100 % appears only at the end.
    let percent = padded("\(Int(share * 100))", 3) + "%"
    let head = label.isEmpty ? percent : "\(label) \(percent)"
    let tail = numbers.isEmpty ? "" : " \(numbers)"
    let bar = min(columns - head.count - tail.count - 3, barColumnsMax)
    guard bar >= barColumnsMin else { return String((head + tail).prefix(max(columns, 0))) }
    let filled = Int(share * Float(bar))
    let drawn = String(repeating: "=", count: max(filled - 1, 0)) + (filled == 0 ? "" : share < 1 ? ">" : "=")
    return "\(head) [\(drawn)\(String(repeating: " ", count: bar - drawn.count))]\(tail)"
  }

  /// `23.7 MiB of 64.0 MiB`, or the first number alone if `expected` is unknown.
  static func numbers(_ done: Int64, of expected: Int64) -> String {
    expected > 0 ? "\(bytes(done)) of \(bytes(expected))" : bytes(done)
  }

  /// `512 B`, `1.5 KiB`, `64.0 MiB`
  static func bytes(_ count: Int64) -> String {
    guard count >= 1024 else { return "\(count) B" }
    var value = Double(count) / 1024
    var unit = "KiB"
    // From 1023.95 on, rounding would give 1024.0 of the smaller unit.
    for next in ["MiB", "GiB", "TiB", "PiB"] where value >= 1023.95 {
      value /= 1024
      unit = next
    }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10) \(unit)"
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(width - text.count, 0)) + text
  }
}
