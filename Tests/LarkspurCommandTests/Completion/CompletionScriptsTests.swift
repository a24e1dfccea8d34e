import Foundation
import TestKit
import Testing

@testable import LarkspurCommand

@Suite struct CompletionScriptsTests {
  /// Runs a program of the system, if it is installed.
  private func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, text: String)? {
    guard FileManager.default.isExecutableFile(atPath: program) else { return nil }
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: text, as: UTF8.self))
  }

  @Test func bash() throws {
    let directory = try TemporaryDirectory()
    try directory.write(CompletionScripts.bash, to: "larkspur")
    try directory.write("", to: "a file")
    let script = directory.path("larkspur")
    /// The completions of the last word.
    func completions(_ words: String...) throws -> [String] {
      let line = words.map { "'\($0)'" }.joined(separator: " ")
      let command = """
        source '\(script)' && complete -p larkspur >/dev/null && cd '\(directory.path)' || exit 9
        COMP_WORDS=(larkspur \(line)); COMP_CWORD=\(words.count); _larkspur; printf '%s\\n' "${COMPREPLY[@]}"
        """
      let result = try #require(try run("/bin/bash", ["--norc", "-c", command]))
      #expect(result.status == 0, "\(result.text)")
      return result.text.split(separator: "\n").map(String.init)
    }
    #expect(try run("/bin/bash", ["-n", script])?.text == "")
    #expect(try completions("") == HelpTopic.commands.map(\.rawValue) + ["help", "version"])
    #expect(try completions("ev") == ["events"])
    #expect(try completions("help", "exit") == ["exit-status"])
    #expect(try completions("get", "--netrc") == ["--netrc", "--netrc-file"])
    #expect(try completions("--writ") == ["--write-out"])
    #expect(try completions("http://a/", "-o", "a") == ["a file"])
    #expect(try completions("get", "-o", "-") == [])
    #expect(try completions("get", "-A", "") == [])
    #expect(try completions("socket", "--netrc") == [])
    #expect(try completions("transfers", "r") == ["run", "resume"])
    #expect(try completions("check", "a") == ["a file"])
    let all = try completions("get", "-")
    #expect(Set(all) == Set(HelpTopic.get.options.flatMap(\.words) + ["-h", "--help"]))
  }

  /// Each option is in each script, and shells that are installed can parse their script.
  @Test func everyOption() throws {
    let directory = try TemporaryDirectory()
    for (name, script) in [("zsh", CompletionScripts.zsh), ("fish", CompletionScripts.fish)] {
      try directory.write(script, to: name)
      if let result = try run("/usr/bin/\(name)", ["-n", directory.path(name)]) {
        #expect(result.status == 0 && result.text.isEmpty, "\(result.text)")
      }
    }
    for topic in HelpTopic.commands {
      #expect(CompletionScripts.fish.contains(" -a \(topic.rawValue) -d "))
      for entry in topic.options {
        let name = entry.names.long
        #expect(CompletionScripts.zsh.contains("--\(name)\(entry.names.takesValue ? "=" : "")"))
        #expect(CompletionScripts.fish.contains(" -l \(name) "))
      }
    }
    #expect(CompletionScripts.zsh.contains(#"      '*'{-o+,--output=}'[Write to FILE]:FILE:_files' \"#))
    #expect(CompletionScripts.fish.contains("-s o -l output -r -F -d 'Write to FILE'\n"))
    #expect(CompletionScripts.fish.contains(#"URL\'s host"#))
  }

  @Test func manual() throws {
    let directory = try TemporaryDirectory()
    try directory.write(ManualPage.text, to: "larkspur.1")
    if let result = try run("/usr/bin/groff", ["-ww", "-man", "-Tutf8", "-z", directory.path("larkspur.1")]) {
      #expect(result.status == 0 && result.text.isEmpty, "\(result.text)")
    }
    let lines = ManualPage.text.split(separator: "\n")
    #expect(lines.filter { $0 == ".TP" }.count >= HelpTopic.get.options.count + ExitStatus.allCases.count)
    #expect(lines.contains(#"\fB\-o\fR, \fB\-\-output\fR \fIFILE\fR"#))
    // A line is a macro, or text that cannot be mistaken for one.
    let macros = [".TH", ".SH", ".SS", ".TP", ".nf", ".fi", #".\""#]
    #expect(
      lines.allSatisfy { line in !line.hasPrefix(".") && !line.hasPrefix("'") || macros.contains { line.hasPrefix($0) }
      })
  }
}
