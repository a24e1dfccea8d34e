import LarkspurIO
import Synchronization

/// The command's output. Text that cannot be written is lost: there is no other place to report the error.
package enum Console {
  /// Whether warnings and errors are left out (`-s`).
  private static let isMuted = Atomic(false)

  /// Leaves out warnings and errors from now on.
  package static func mute() { isMuted.store(true, ordering: .relaxed) }

  package static func print(_ text: String) {
    try? OpenFile.standardOutput.write(text)
  }

  /// Writes a message to standard error.
  package static func complain(_ message: String) {
    if !isMuted.load(ordering: .relaxed) { note("larkspur: \(message)") }
  }

  /// Writes a line of `-v`, with the time since the start of the command.
  package static func write(_ message: String, after time: Duration) {
    let milliseconds = Format.decimal(Format.milliseconds(time))
    note("* \(Format.padded(milliseconds, to: 8, atEnd: false)) ms  \(message)")
  }

  /// Writes lines to standard error, in a single write so that they stay whole among other output. Text of a peer in
  /// them has no effect on the terminal, and cannot begin a new line.
  package static func note(_ lines: String...) { note(lines) }

  package static func note(_ lines: [String]) { draw(lines.map { Format.visible($0.utf8) }) }

  /// Writes lines to standard error that are safe for a terminal already, and may have a style.
  package static func draw(_ lines: [String]) {
    try? OpenFile.standardError.write(lines.map { $0 + "\n" }.joined())
  }
}
