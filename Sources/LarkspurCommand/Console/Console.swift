import LarkspurIO

/// The command's output. Text that cannot be written is lost: there is no other place to report the error.
enum Console {
  static func print(_ text: String) {
    try? OpenFile.standardOutput.write(text)
  }

  /// Writes a message to standard error, in a single write so that it stays whole among other output.
  static func complain(_ message: String) {
    try? OpenFile.standardError.write("larkspur: \(message)\n")
  }

  /// Writes a line of `-v`, with the time since the start of the command.
  static func write(_ message: String, after time: Duration) {
    let milliseconds = Format.decimal(Format.milliseconds(time))
    note("* \(Format.padded(milliseconds, to: 8, atEnd: false)) ms  \(message)")
  }

  /// Writes a line to standard error.
  static func note(_ line: String) {
    try? OpenFile.standardError.write(line + "\n")
  }
}
