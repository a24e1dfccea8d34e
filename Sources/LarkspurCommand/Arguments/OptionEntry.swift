import LarkspurConsole

/// The purpose of an option. Help, completions and the manual's page show options in this order.
package enum OptionGroup: String, CaseIterable, Sendable {
  /// The options that one command alone has.
  case command = "Options of the command"
  case urls = "URLs and options"
  case request = "Request"
  case body = "Body of the request"
  case authorization = "Authorization"
  case redirection = "Redirections"
  case output = "Output"
  case downloads = "Downloads"
  case time = "Time and repetition"
  case connection = "Connections and proxies"
  case tls = "TLS"
  case messages = "Messages and records"
}

/// The text of an option: the words that help, completions and the manual's page show.
package struct OptionEntry: Hashable, Sendable {
  package let names: ArgumentReader.Option
  /// The name of the value; empty for an option without a value.
  package let value: String
  package let help: String
  package var group = OptionGroup.command

  /// The names as they stand on a command line.
  var words: [String] { (names.short.map { ["-\($0)"] } ?? []) + ["--\(names.long)"] }

  /// The first sentence of the help, without its full stop.
  var summary: String {
    let sentence = help.prefix(upTo: help.firstRange(of: ". ")?.lowerBound ?? help.endIndex)
    return String(sentence.hasSuffix(".") ? sentence.dropLast() : sentence)
  }

  /// Whether the value is the name of a file.
  var takesFile: Bool { ["FILE", "PATH", "DIR"].contains(value) }

  // MARK: - Help

  /// The column in which the help begins.
  private static var helpColumn: Int { 28 }
  /// Maximum width of a line.
  private static var lineMax: Int { 118 }

  /// The lines of the help: the names, and the text beside them, or below names that are too long.
  package var helpLines: String {
    let heading = "  \(names.short.map { "-\($0), " } ?? "    ")--\(names.long)\(value.isEmpty ? "" : " \(value)")"
    let indentation = String(repeating: " ", count: Self.helpColumn)
    var lines = [Format.padded(heading, to: Self.helpColumn)]
    if heading.count + 1 >= Self.helpColumn { lines = [heading, indentation] }
    for word in help.split(separator: " ") {
      // A line that begins with an option would look like the next entry.
      if lines[lines.count - 1].count + word.count >= Self.lineMax, !word.hasPrefix("-") { lines.append(indentation) }
      if lines[lines.count - 1].count > Self.helpColumn { lines[lines.count - 1] += " " }
      lines[lines.count - 1] += word
    }
    return lines.map { $0 + "\n" }.joined()
  }
}

extension [OptionEntry] {
  /// The entries of each purpose, without those purposes that none has.
  var groups: [(title: String, entries: [OptionEntry])] {
    OptionGroup.allCases.map { group in (group.rawValue, filter { $0.group == group }) }.filter { !$0.entries.isEmpty }
  }

  /// The help on all options, with a title for each purpose if there are several.
  var help: String {
    let groups = groups
    let texts = groups.map { group in
      (groups.count > 1 ? "\(group.title):\n" : "") + group.entries.map(\.helpLines).joined()
    }
    return texts.joined(separator: "\n") + "  -h, --help\n"
  }
}
