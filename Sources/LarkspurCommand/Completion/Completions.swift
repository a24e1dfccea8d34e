import Foundation
import LarkspurBytes
import LarkspurConsole
import LarkspurIO

/// `larkspur completions`: writes the files that are made from the lists of options.
struct Completions {
  private let options: CompletionsOptions

  init(_ options: CompletionsOptions) { self.options = options }

  func run() -> ExitStatus {
    guard let kind = options.kind else { return .usage }
    guard kind == .install else {
      Console.print(kind.text)
      return .success
    }
    do throws(CommandFailure) {
      try install()
      return .success
    } catch {
      return error.report()
    }
  }

  private func install() throws(CommandFailure) {
    guard
      let share = options.prefix.map({ $0 + "/share" }) ?? UserPaths.directory("XDG_DATA_HOME", ".local/share")
    else {
      throw CommandFailure(.writeFailed, "neither XDG_DATA_HOME nor HOME is an absolute path: use --prefix")
    }
    for kind in CompletionsOptions.Kind.allCases {
      guard let place = kind.place else { continue }
      let path = "\(share)/\(place)"
      do {
        try FileManager.default.createDirectory(
          atPath: FilePaths.directory(of: path), withIntermediateDirectories: true)
      } catch {
        throw CommandFailure(
          .writeFailed, "could not create \(FilePaths.directory(of: path)): \(error.localizedDescription)")
      }
      let file = try FileOutput(path: path, deadline: .never)
      do throws(CommandFailure) {
        try file.write(Array(kind.text.utf8).span)
        try file.commit()
      } catch {
        file.abandon()
        throw error
      }
      Console.print("wrote \(path)\n")
      if kind == .zsh, options.prefix == nil {
        Console.print(
          "  zsh finds it with this line before compinit in ~/.zshrc: fpath+=(\(FilePaths.directory(of: path)))\n")
      }
    }
  }
}

extension CompletionsOptions.Kind {
  /// The text of the file.
  var text: String {
    switch self {
    case .bash: CompletionScripts.bash
    case .zsh: CompletionScripts.zsh
    case .fish: CompletionScripts.fish
    case .manual: ManualPage.text
    case .install: ""
    }
  }

  /// The path of the file below a directory `share`, or `nil` if there is no file.
  fileprivate var place: String? {
    switch self {
    case .bash: "bash-completion/completions/larkspur"
    case .zsh: "zsh/site-functions/_larkspur"
    case .fish: "fish/vendor_completions.d/larkspur.fish"
    case .manual: "man/man1/larkspur.1"
    case .install: nil
    }
  }
}
