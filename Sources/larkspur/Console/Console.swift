import LarkspurIO

/// What the command says. Words that cannot be written are lost: there is nobody left to tell.
enum Console {
  static func print(_ text: String) {
    try? OpenFile.standardOutput.write(text)
  }

  /// A message on standard error, in one write so that it stays whole among others.
  static func complain(_ words: String) {
    try? OpenFile.standardError.write("larkspur: \(words)\n")
  }

  /// A line on standard error.
  static func note(_ line: String) {
    try? OpenFile.standardError.write(line + "\n")
  }
}
