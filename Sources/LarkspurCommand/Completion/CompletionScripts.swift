/// The completions for shells, made from the lists of options.
enum CompletionScripts {
  private static let commands = HelpTopic.commands
  private static let topics = HelpTopic.allCases.filter { $0 != .overview }.map(\.rawValue)
  /// The words that may stand in the place of a command, besides commands.
  private static let others = ["help", "version"]

  /// Completes options, and the files of options. After other options that take a value it completes nothing.
  static var bash: String {
    let cases = commands.map { command in
      let (options, help) = (command.options, ["-h", "--help"])
      let files = options.filter(\.takesFile).flatMap(\.words)
      let values = options.filter { $0.names.takesValue && !$0.takesFile }.flatMap(\.words)
      return """
            \(command.rawValue))
              options='\((options.flatMap(\.words) + help).joined(separator: " "))'
              files=' \(files.joined(separator: " ")) '
              values=' \(values.joined(separator: " ")) '
              words='\(command.words.joined(separator: " "))' ;;

        """
    }
    return """
      # Completions of larkspur for bash, made by `larkspur completions bash`.
      _larkspur() {
        local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
        local command=get options= files= values= words=
        COMPREPLY=()
        if [[ $COMP_CWORD -eq 1 && $current != -* ]]; then
          COMPREPLY=($(compgen -W '\((commands.map(\.rawValue) + others).joined(separator: " "))' -- "$current"))
          return
        fi
        case ${COMP_WORDS[1]} in
          help) COMPREPLY=($(compgen -W '\(topics.joined(separator: " "))' -- "$current")); return ;;
          \(commands.map(\.rawValue).joined(separator: "|"))) command=${COMP_WORDS[1]} ;;
        esac
        case $command in
      \(cases.joined())  esac
        if [[ $values == *" $previous "* ]]; then return; fi
        if [[ $current == -* && $files != *" $previous "* ]]; then
          COMPREPLY=($(compgen -W "$options" -- "$current"))
        elif [[ -n $words && $files != *" $previous "* ]]; then
          COMPREPLY=($(compgen -W "$words" -- "$current"))
        else
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
          compopt -o filenames 2>/dev/null
        fi
      }
      complete -F _larkspur larkspur

      """
  }

  static var zsh: String {
    let cases = commands.map { command in
      let specifications = command.options.map { option in
        let (short, long) = (option.names.short, option.names.long)
        let value = option.names.takesValue
        let names =
          short.map { "{-\($0)\(value ? "+" : ""),--\(long)\(value ? "=" : "")}" } ?? "--\(long)\(value ? "=" : "")"
        let action = value ? ":\(zshText(option.value)):\(option.takesFile ? "_files" : "")" : ""
        return "      '*'\(names)'[\(zshText(option.summary))]\(action)' \\\n"
      }
      let operands =
        command == .check
        ? "*: :_files" : command.words.isEmpty ? "*: :" : "*: :(\(command.words.joined(separator: " ")))"
      return "    \(command.rawValue))\n      _arguments -s \\\n\(specifications.joined())      '\(operands)' ;;\n"
    }
    let descriptions = commands.map { "    '\($0.rawValue):\(zshText($0.summary))'\n" }.joined()
    return """
      #compdef larkspur
      # Completions of larkspur for zsh, made by `larkspur completions zsh`.
      _larkspur() {
        local command=get
        local -a commands=(
      \(descriptions)    \(others.joined(separator: " "))
        )
        if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
          _describe command commands
          return
        fi
        case $words[2] in
          help) compadd \(topics.joined(separator: " ")); return ;;
          \(commands.map(\.rawValue).joined(separator: "|"))) command=$words[2]; shift words; (( CURRENT-- )) ;;
        esac
        case $command in
      \(cases.joined())  esac
      }
      if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _larkspur "$@"; else compdef _larkspur larkspur; fi

      """
  }

  /// Quotes text in a specification of `_arguments` that stands in single quotes.
  private static func zshText(_ text: String) -> String {
    text.replacing(/[\\\[\]:]/) { "\\\($0.0)" }.replacing("'", with: #"'\''"#)
  }

  static var fish: String {
    var lines = ["# Completions of larkspur for fish, made by `larkspur completions fish`.", "complete -c larkspur -f"]
    for (name, summary) in commands.map({ ($0.rawValue, $0.summary) }) + others.map({ ($0, "") }) {
      lines.append("complete -c larkspur -n __fish_use_subcommand -a \(name) -d \(fishText(summary))")
    }
    let last = "__fish_seen_subcommand_from"
    lines.append("complete -c larkspur -n '\(last) help' -a '\(topics.joined(separator: " "))'")
    for command in commands {
      // `get` may be left out.
      let others = commands.filter { $0 != .get }.map(\.rawValue) + others
      let condition =
        "'\(command == .get ? "not \(last) \(others.joined(separator: " "))" : "\(last) \(command.rawValue)")'"
      if !command.words.isEmpty {
        lines.append("complete -c larkspur -n \(condition) -a '\(command.words.joined(separator: " "))'")
      }
      if command == .check { lines.append("complete -c larkspur -n \(condition) -F") }
      for option in command.options {
        let short = option.names.short.map { " -s \($0)" } ?? ""
        let value = option.takesFile ? " -r -F" : option.names.takesValue ? " -x" : ""
        lines.append(
          "complete -c larkspur -n \(condition)\(short) -l \(option.names.long)\(value) -d \(fishText(option.summary))")
      }
    }
    return lines.map { $0 + "\n" }.joined()
  }

  private static func fishText(_ text: String) -> String {
    "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
  }
}
