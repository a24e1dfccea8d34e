import LarkspurHTTP
import TestKit
import Testing

@testable import LarkspurCommand

@Suite struct ConfigFileTests {
  @Test(
    arguments: [
      ("", []), ("  ", []), ("# output = x", []), ("  # x", []), ("silent", ["--silent"]),
      (" silent # quiet", ["--silent"]),
      ("output = file", ["--output=file"]), ("output=file", ["--output=file"]), ("output: file", ["--output=file"]),
      ("output file\r", ["--output=file"]), (#"output = "two words" # x"#, ["--output=two words"]),
      (#"user-agent = """#, ["--user-agent="]), ("user-agent =", ["--user-agent="]),
      ("url = http://a:80/?b=c", ["--url=http://a:80/?b=c"]),
      (#"data "a\"b\\c\td\qe""#, ["--data=a\"b\\c\tdqe"]), ("-o file", ["-o", "file"]),
      ("--output file", ["--output", "file"]),
      ("--output=file", ["--output=file"]), ("-sS", ["-sS"]), ("output = \"=x\"", ["--output==x"]),
    ] as [(String, [String])])
  func words(line: String, words: [String]) throws { #expect(try ConfigFile.words(of: Array(line.utf8)[...]) == words) }

  @Test(arguments: [
    (
      "silent\noutput = two words",
      "f:2: something stands after the value of --output (a value with blanks has to stand in double quotes)"
    ),
    ("output = \"x", "f:1: the closing quote is missing"), ("\n\nnonsense = 1", "f:3: unknown option --nonsense"),
    ("silen", "f:1: unknown option --silen (did you mean --silent?)"), ("silent = 1", "f:1: --silent takes no value"),
    ("output", "f:1: --output needs a value"), ("config = x", "f:1: a file of options cannot name another one"),
    ("-s http://a/", "f:1: \"http://a/\" is no option (a URL is given by url = URL)"),
    ("max-time = soon", "f:1: --max-time wants seconds, such as 2 or 0.5, not \"soon\""),
  ])
  func errors(text: String, message: String) {
    var options = GetOptions(url: "")
    #expect(throws: UsageError(message)) { try ConfigFile.apply(Array(text.utf8), of: "f", to: &options) }
  }

  private func options(_ arguments: [String], _ configuration: String? = nil) throws -> GetOptions? {
    let invocation = try Invocation(parsing: arguments[...], configuration: configuration)
    if case .get(let options) = invocation { return options } else { return nil }
  }

  @Test func files() throws {
    let directory = try TemporaryDirectory()
    try directory.write("user-agent = one\nheader = \"A: b\"\nsilent\n", to: "get.conf")
    try directory.write("user-agent = two\nurl = http://a/\n", to: "more")
    let (own, more) = (directory.path("get.conf"), directory.path("more"))
    var expected = GetOptions(url: "http://a/")
    (expected.userAgent, expected.isSilent, expected.fields) = ("one", true, [.init("A", "b")])
    #expect(try options(["get", "http://a/"], own) == expected)
    #expect(try options(["http://a/"], own) == expected)
    expected.userAgent = "two"
    #expect(try options(["get", "-K", more], own) == expected)
    expected.userAgent = "three"
    #expect(try options(["get", "--config=\(more)", "-A", "three"], own) == expected)
    for word in ["-q", "--disable"] {
      #expect(try options(["get", word, "http://a/"], own) == GetOptions(url: "http://a/"))
    }
    #expect(try options(["-qs", "http://a/"], own)?.userAgent == nil)
    #expect(try options(["get", "http://a/", "-q"], own)?.userAgent == "one")
    #expect(try options(["get", "http://a/"], directory.path("none")) == GetOptions(url: "http://a/"))
    #expect(throws: UsageError.self) { try options(["get", "http://a/", "-K", directory.path("none")]) }
  }
}
