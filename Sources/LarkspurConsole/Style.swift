import LarkspurIO

/// Emphasis for terminals. Other outputs get plain text.
package struct Style: Sendable {
  /// A color of text: the terminal's own, or one of its palette.
  package enum Color: Int, Sendable {
    case plain = 0
    case red = 31
    case green = 32
    case yellow = 33
    case blue = 34
    case magenta = 35
    case cyan = 36
  }

  private let isOn: Bool

  package init(isOn: Bool) { self.isOn = isOn }

  /// The style for a file. Honours `NO_COLOR` (see no-color.org).
  private init(for file: OpenFile) {
    isOn =
      file.isTerminal && EnvironmentVariable.value(of: "TERM") != "dumb"
      && (EnvironmentVariable.value(of: "NO_COLOR") ?? "").isEmpty
  }

  /// The style for standard output.
  package static let forStandardOutput = Style(for: .standardOutput)

  /// The style for standard error.
  package static let forStandardError = Style(for: .standardError)

  package func bold(_ text: String) -> String { emphasized(text, 1) }

  package func red(_ text: String) -> String { colored(text, .red) }

  package func colored(_ text: String, _ color: Color) -> String {
    color == .plain ? text : emphasized(text, color.rawValue)
  }

  private func emphasized(_ text: String, _ code: Int) -> String {
    isOn ? "\u{1b}[\(code)m\(text)\u{1b}[m" : text
  }
}
