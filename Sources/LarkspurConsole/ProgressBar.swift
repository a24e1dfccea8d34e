import LarkspurBytes
import LarkspurIO

/// A line on a terminal that shows the progress of a transfer.
///
/// ```
///  37% [===========>                  ]  23.7 MiB of 64.0 MiB  412.3 MiB/s  0:07 left
///  23.7 MiB  412.3 MiB/s
/// ```
package struct ProgressBar {
  /// The values to show.
  package struct Reading: Hashable {
    package var received: Int
    package var total: Int?
    package var bytesPerSecond: Double

    package init(received: Int, total: Int?, bytesPerSecond: Double) {
      self.received = received
      self.total = total
      self.bytesPerSecond = bytesPerSecond
    }
  }

  private static let redrawInterval = Duration.milliseconds(100)
  /// The weight of the latest interval in the displayed rate: large enough to follow a change within about a second,
  /// small enough not to flicker.
  private static let rateWeight = 0.25

  private let terminal: OpenFile
  private let start: Deadline
  private var reading: Reading
  private var drawnAt: Deadline
  private var receivedWhenDrawn = 0

  /// - Parameter total: The number of bytes to expect, if known.
  package init(total: Int?, on terminal: OpenFile, now: Deadline) {
    self.terminal = terminal
    reading = Reading(received: 0, total: total, bytesPerSecond: 0)
    start = now
    drawnAt = now
  }

  /// - Parameter count: The number of bytes so far. It falls when a transfer begins anew.
  package mutating func advance(to count: Int, now: Deadline) {
    reading.received = count
    let interval = now.duration(since: drawnAt)
    guard interval >= Self.redrawInterval else { return }
    let rate = Double(max(reading.received - receivedWhenDrawn, 0)) / Format.seconds(interval)
    reading.bytesPerSecond += (rate - reading.bytesPerSecond) * (reading.bytesPerSecond == 0 ? 1 : Self.rateWeight)
    drawnAt = now
    receivedWhenDrawn = reading.received
    draw()
  }

  /// Shows the mean rate, and ends the line.
  package mutating func finish(now: Deadline) {
    let seconds = Format.seconds(now.duration(since: start))
    reading.bytesPerSecond = seconds > 0 ? Double(reading.received) / seconds : 0
    draw()
    try? terminal.write("\n")
  }

  private func draw() {
    // One column stays free, because a full line would wrap on some terminals.
    let line = Self.line(reading, columns: (terminal.terminalColumns ?? 80) - 1)
    // ESC [ K erases the rest of a longer line.
    try? terminal.write("\r\(line)\u{1b}[K")
  }

  /// Returns the line, cut to `columns`. The bar takes the columns that the numbers leave.
  package static func line(_ reading: Reading, columns: Int) -> String {
    let rate = Format.bytes(reading.bytesPerSecond) + "/s"
    guard let total = reading.total, total > 0 else {
      return String("\(Format.bytes(reading.received))  \(rate)".prefix(max(columns, 0)))
    }
    let share = min(Double(reading.received) / Double(total), 1)
    // Rounded down, so that 100 % means all bytes.
    let percent = Format.padded("\(Int(share * 100))", to: 3, atEnd: false) + "%"
    var numbers = "\(Format.bytes(reading.received)) of \(Format.bytes(total))  \(rate)"
    if reading.received < total, reading.bytesPerSecond > 0 {
      let left = min(Double(total - reading.received) / reading.bytesPerSecond, 1e9)
      numbers += "  \(Format.clock(.seconds(left.rounded(.up)))) left"
    }
    // Padded, so that the numbers keep their places while they grow.
    numbers = Format.padded(numbers, to: 46)
    let barColumns = min(columns - percent.count - numbers.count - 5, 50)
    guard barColumns >= 10 else {
      return String("\(percent)  \(numbers)".prefix(max(columns, 0)))
    }
    let filled = Int(share * Double(barColumns))
    let bar = String(repeating: "=", count: max(filled - 1, 0)) + (filled == 0 ? "" : share < 1 ? ">" : "=")
    return "\(percent) [\(Format.padded(bar, to: barColumns))]  \(numbers)"
  }
}
