import Testing

@testable import LarkspurCommand

@Suite struct URLGlobTests {
  private func urls(_ text: String) throws -> [String] {
    let glob = try URLGlob(text)
    return (0..<glob.count).map { glob[$0].url }
  }

  @Test(arguments: [
    ("http://a/", ["http://a/"]), ("", [""]), ("a/{b,c}", ["a/b", "a/c"]), ("{a,,b}x", ["ax", "x", "bx"]),
    ("[1-3]", ["1", "2", "3"]), ("x[08-10]y", ["x08y", "x09y", "x10y"]), ("[001-006:2]", ["001", "003", "005"]),
    ("[9-11]", ["9", "10", "11"]), ("[5-5]", ["5"]), ("[a-c]", ["a", "b", "c"]), ("[A-Z:10]", ["A", "K", "U"]),
    ("{a,b}/[1-2]", ["a/1", "a/2", "b/1", "b/2"]), ("{a}{b}", ["ab"]), ("é{ü,ö}", ["éü", "éö"]),
    (#"\{a\}\[1-2\]"#, ["{a}[1-2]"]), (#"{a\,b,\}}"#, ["a,b", "}"]), (#"\a"#, [#"\a"#]), ("?a[]=1", ["?a[]=1"]),
    ("http://[::1]:80/[1-2]", ["http://[::1]:80/1", "http://[::1]:80/2"]),
    ("http://[fe80::1%25eth0]/", ["http://[fe80::1%25eth0]/"]),
  ])
  func expansion(text: String, expected: [String]) throws { #expect(try urls(text) == expected) }

  @Test(arguments: [
    ("a{b", "character 2: the closing brace is missing"), ("é[1-3", "character 2: the closing bracket is missing"),
    ("a}", "character 2: nothing opens before this }"), ("a]", "character 2: nothing opens before this ]"),
    ("{}", "character 1: nothing is in the braces"),
    ("{a,{b}}", "character 4: braces cannot have brackets or braces in them"),
    ("{a]}", "character 3: braces cannot have brackets or braces in them"),
  ])
  func malformed(text: String, message: String) {
    #expect(throws: CommandFailure(.malformedURL, "the URL, \(message) (-g takes a URL as it is)")) {
      try URLGlob(text)
    }
  }

  @Test(arguments: [
    "[5-1]", "[b-a]", "[a-5]", "[1-b]", "[a-Z]", "[A-z]", "[1-3:0]", "[1]", "[1-]", "[-1]", "[1-3:]", "[1-3:a]",
    "[ab-c]",
    "[1 - 3]", "[+1-3]", "[1-99999999999999999999]", "[é-ü]",
  ])
  func rangesThatAreNone(text: String) {
    let error = #expect(throws: CommandFailure.self) { try URLGlob(text) }
    #expect(error?.message?.contains("character 1: this is no range") == true)
  }

  @Test func limits() throws {
    #expect(try URLGlob("[1-100000]").count == URLGlob.urlsMax)
    #expect(try URLGlob("[0-9223372036854775807:9223372036854775807]").count == 2)
    #expect(try URLGlob("[1-100000]{a}")[99_999].url == "100000a")
    for text in ["[1-100001]", "[0-9223372036854775807]", "[1-100000]{a,b}", "[1-1000][1-1000]"] {
      let error = #expect(throws: CommandFailure.self) { try URLGlob(text) }
      #expect(error?.status == .malformedURL)
    }
  }

  @Test(arguments: [
    ("f_#1_#2.txt", "f_x_y.txt"), ("#2#1", "yx"), ("#3 #0 # #12", "#3 #0 # #12"),
    ("#99999999999999999999", "#99999999999999999999"),
  ])
  func names(template: String, name: String) { #expect(URLGlob.name(template, choices: ["x", "y"]) == name) }
}
