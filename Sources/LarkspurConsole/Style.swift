import LarkspurIO

/// Emphasis for terminals. Other outputs get plain text.
package struct Style {
  private let isOn: Bool

  /// The style for standard output. Honours `NO_COLOR` (see no-color.org).
  package static let forStandardOutput = Style(
    isOn: OpenFile.standardOutput.isTerminal && EnvironmentVariable.value(of: "TERM") != "dumb"
      && (EnvironmentVariable.value(of: "NO_COLOR") ?? "").isEmpty)

  package func bold(_ text: String) -> String { emphasized(text, 1) }

  package func red(_ text: String) -> String { emphasized(text, 31) }

  private func emphasized(_ text: String, _ code: Int) -> String {
    isOn ? "\u{1b}[\(code)m\(text)\u{1b}[m" : text
  }
}
