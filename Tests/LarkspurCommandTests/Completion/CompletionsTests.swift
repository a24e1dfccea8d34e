import TestKit
import Testing

@testable import LarkspurCommand

/// Tests `larkspur completions`.
@Suite struct CompletionsTests {
  @Test func files() async throws {
    let directory = try TemporaryDirectory()
    let own = try await Command(["completions", "install"], environment: ["HOME": directory.path]).end()
    #expect(own.status == 0, "\(own.errors)")
    let share = directory.path(".local/share") + "/"
    let places = [
      ("bash-completion/completions/larkspur", CompletionScripts.bash),
      ("zsh/site-functions/_larkspur", CompletionScripts.zsh),
      ("fish/vendor_completions.d/larkspur.fish", CompletionScripts.fish), ("man/man1/larkspur.1", ManualPage.text),
    ]
    for (place, text) in places {
      #expect(try directory.text(of: ".local/share/" + place) == text)
      #expect(own.text.contains("wrote \(share)\(place)\n"))
    }
    // Again, and elsewhere.
    #expect(try await Command(["completions", "install"], environment: ["XDG_DATA_HOME": share]).end().status == 0)
    #expect(try await Command.run("completions", "install", "--prefix", directory.path("usr")).status == 0)
    #expect(try directory.text(of: "usr/share/man/man1/larkspur.1") == ManualPage.text)
    #expect(directory.names == [".local", "usr"])
  }

  @Test func outputAndRefusals() async throws {
    #expect(try await Command.run("completions", "bash").text == CompletionScripts.bash)
    let homeless = try await Command.run("completions", "install")
    #expect(homeless.status == 23 && homeless.errors.contains("--prefix"))
    #expect(try await Command.run("completions", "install", "--prefix", "/dev/null").status == 23)
    for (arguments, message) in [
      ([], "a kind is missing: bash, zsh, fish, man, install"), (["fis"], "unknown kind fis (did you mean fish?)"),
      (["bash", "zsh"], "more than one kind: zsh"), (["man", "--prefix", "x"], "--prefix belongs to install"),
    ] as [([String], String)] {
      let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["completions"] + arguments)[...]) }
      #expect(error?.description == message)
    }
  }
}
