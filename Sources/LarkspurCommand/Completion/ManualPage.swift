/// The page larkspur(1) of the manual, made from the lists of options and of exit statuses, in the macros of man(7).
enum ManualPage {
  static var text: String {
    var lines = [
      #".\" Made by `larkspur completions man`."#, ".TH LARKSPUR 1 \"\" \"larkspur \(LarkspurCommand.version)\"",
      ".SH NAME", #"larkspur \- an HTTP/1.1 client"#, ".SH SYNOPSIS",
    ]
    for command in HelpTopic.commands { lines += [".nf", "\\fB\(escaped(command.synopsis))\\fR", ".fi"] }
    lines += [".SH COMMANDS"]
    for command in HelpTopic.commands {
      lines += entry(
        "\\fB\(command.rawValue)\\fR", "\(command.summary.prefix(1).uppercased())\(command.summary.dropFirst()).")
    }
    lines += [escaped("`larkspur help COMMAND` says more on each.")]
    for command in HelpTopic.commands where !command.options.isEmpty {
      lines += [".SH \"OPTIONS OF \(command.rawValue.uppercased())\""]
      let groups = command.options.groups
      for group in groups {
        if groups.count > 1 { lines.append(".SS \"\(escaped(group.title))\"") }
        for option in group.entries {
          let names = option.words.map { "\\fB\(escaped($0))\\fR" }.joined(separator: ", ")
          lines += entry(option.value.isEmpty ? names : "\(names) \\fI\(escaped(option.value))\\fR", option.help)
        }
      }
    }
    lines += [".SH FILES"]
    lines += entry(
      "\\fI\(escaped("$XDG_CONFIG_HOME/larkspur/get.conf"))\\fR",
      "Options of get that come before those of the command line. Without the variable: ~/.config/larkspur/get.conf.")
    lines += entry("\\fI\(escaped("~/.netrc"))\\fR", "Users and passwords of hosts, for --netrc.")
    lines += [".SH \"EXIT STATUS\""]
    for status in ExitStatus.allCases { lines += entry("\\fB\(status.rawValue)\\fR", status.meaning) }
    return lines.map { $0 + "\n" }.joined()
  }

  /// - Parameter heading: The heading, with its macros.
  private static func entry(_ heading: String, _ text: String) -> [String] { [".TP", heading, escaped(text)] }

  /// Escapes text. A hyphen becomes a minus sign, which can be copied to a command line. A line that begins with a point
  /// or an apostrophe would be a macro.
  private static func escaped(_ text: String) -> String {
    let escaped = text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("'", with: "\\(aq")
      .replacing("`", with: "\\(ga").replacing("~", with: "\\(ti").replacing("^", with: "\\(ha")
    return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
  }
}
