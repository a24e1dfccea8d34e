/// The options of `larkspur completions`.
package struct CompletionsOptions: OptionList, Hashable, Sendable {
  package enum Kind: String, CaseIterable, Hashable, Sendable {
    case bash, zsh, fish
    /// The page of the manual.
    case manual = "man"
    /// All files, at their places.
    case install
  }

  package private(set) var kind: Kind?
  /// The directory above `share`, in place of the user's default.
  package private(set) var prefix: String?

  init() {}

  static let options: [CommandOption<CompletionsOptions>] = [
    .init(nil, "prefix", "DIR", "install: Write below DIR/share, such as that of /usr/local.") {
      options, value throws(UsageError) in
      guard !value.isEmpty else { throw UsageError("the directory of --prefix has no name") }
      options.prefix = value
    }
  ]

  mutating func take(_ word: String) throws(UsageError) {
    guard kind == nil else { throw UsageError("more than one kind: \(word)") }
    guard let kind = Kind(rawValue: word) else {
      throw UsageError("unknown kind \(word)" + Suggestion.text(for: word, among: Kind.allCases.map(\.rawValue)))
    }
    self.kind = kind
  }

  func check() throws(UsageError) {
    guard let kind else {
      throw UsageError("a kind is missing: \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    guard prefix == nil || kind == .install else { throw UsageError("--prefix belongs to install") }
  }

  static let help =
    """
    larkspur completions bash|zsh|fish|man
    larkspur completions install [--prefix DIR]

    Writes the completions of this command for a shell, or its page of the manual, to standard output. `install` writes all
    of them to the places where the shells and man(1) look for files of this user, below $XDG_DATA_HOME or ~/.local/share,
    and names each file that it has written.


    """ + optionsHelp
}
