import LarkspurHTTP
import LarkspurIO
import Testing

@testable import LarkspurCommand

@Suite struct ArgumentReaderTests {
  private func read(_ arguments: String...) throws(UsageError) -> [ArgumentReader.Argument] {
    var reader = ArgumentReader(
      arguments[...],
      options: [.init("i", "include"), .init("v", "verbose"), .init("o", "output", takesValue: true)])
    var arguments: [ArgumentReader.Argument] = []
    while let argument = try reader.next() { arguments.append(argument) }
    return arguments
  }

  @Test func shortOptions() throws {
    let both: [ArgumentReader.Argument] = [
      .option(name: "include", value: ""), .option(name: "verbose", value: ""),
    ]
    #expect(try read("-i", "-v") == both)
    #expect(try read("-iv") == both)
    #expect(try read("-ivo", "x") == both + [.option(name: "output", value: "x")])
    #expect(try read("-ivox") == both + [.option(name: "output", value: "x")])
    #expect(try read("-o-v") == [.option(name: "output", value: "-v")])
    #expect(try read("-o", "-v") == [.option(name: "output", value: "-v")])
    #expect(try read("-o", "") == [.option(name: "output", value: "")])
  }

  @Test func longOptions() throws {
    #expect(try read("--include") == [.option(name: "include", value: "")])
    #expect(try read("--output", "x") == [.option(name: "output", value: "x")])
    #expect(try read("--output=x=y") == [.option(name: "output", value: "x=y")])
    #expect(try read("--output=") == [.option(name: "output", value: "")])
  }

  @Test func operands() throws {
    #expect(try read("a", "-i", "b") == [.operand("a"), .option(name: "include", value: ""), .operand("b")])
    #expect(try read("-") == [.operand("-")])
    #expect(try read("--", "-i", "--", "x") == [.operand("-i"), .operand("--"), .operand("x")])
    #expect(try read("") == [.operand("")])
    #expect(try read() == [])
  }

  @Test(arguments: [
    (["-x"], "unknown option -x"), (["-ix"], "unknown option -x"), (["--nonsense"], "unknown option --nonsense"),
    (["--includ"], "unknown option --includ (did you mean --include?)"),
    (["--otuput=x"], "unknown option --otuput (did you mean --output?)"), (["-o"], "-o needs a value"),
    (["-io"], "-o needs a value"),
    (["--output"], "--output needs a value"), (["--include=1"], "--include takes no value"),
  ])
  func errors(arguments: [String], message: String) {
    #expect(throws: UsageError(message)) {
      var reader = ArgumentReader(
        arguments[...], options: [.init("i", "include"), .init("o", "output", takesValue: true)])
      while try reader.next() != nil {}
    }
  }
}

@Suite struct InvocationTests {
  private func options(_ arguments: String...) throws -> GetOptions {
    guard case .get(let options) = try Invocation(parsing: (["get"] + arguments)[...]) else {
      throw UsageError("no get")
    }
    return options
  }

  @Test func everyOption() throws {
    var expected = GetOptions(url: "http://example.org/")
    #expect(try options("http://example.org/") == expected)
    expected.showsHead = true
    expected.isVerbose = true
    expected.output = "file"
    expected.isHead = true
    expected.headFile = "heads"
    expected.isSilent = true
    expected.showsErrors = true
    expected.userAgent = "me"
    expected.referer = "r"
    expected.dataIsQuery = true
    expected.failsWithBody = false
    expected.addressFamily = .ipv6
    expected.session.setsReferer = true
    expected.session.bearerToken = "t"
    expected.session.cookies = ["a=b; c=d", "e=f"]
    expected.session.cookieJar.files = ["jar"]
    expected.session.cookieJar.output = "new"
    expected.session.redirectsMax = 3
    expected.fields = [.init("A", "1"), .init("B", "2: x"), .init("C", "")]
    expected.method = "PUT"
    expected.data = [
      .text("a=b"), .file("x"), .file("-"), .text("@y"), .file("z"), .text("a b"), .text("a=b@c"), .text("@c"),
      .file("f"), .file("-"),
    ]
    expected.encodedNames = [5: "", 6: "", 7: "n", 8: "n", 9: ""]
    expected.connectTimeout = .milliseconds(250)
    expected.maxTime = .seconds(3)
    expected.failsOnHTTPError = true
    expected.proxy = "p:1"
    expected.proxyExceptions = "a,b"
    #expect(
      try options(
        "-iv", "-ofile", "http://example.org/", "-H", "A: 1", "-HB:2: x \t", "--header", "C:", "-X", "PUT", "-d", "a=b",
        "-d@x", "--data=@-", "--data-raw", "@y", "--data-binary", "@z", "--data-urlencode", "a b",
        "--data-urlencode", "=a=b@c", "--data-urlencode=n=@c", "--data-urlencode", "n@f", "--data-urlencode", "@-",
        "-ID", "heads", "-sSG46", "-A", "me", "-er;auto", "--oauth2-bearer", "t", "-b", "a=b; c=d", "-be=f", "-b",
        "jar",
        "-c", "new", "--max-redirs", "3", "--connect-timeout", "0.25", "-m3", "--fail", "-xp:1", "--noproxy", "a,b")
        == expected)
    #expect(try options("-o", "-", "--", "-x").output == nil)
    #expect(try options("-o", "-", "--", "-x").writesAnyBytes)
    #expect(try options("-e", ";auto", "x").referer == nil)
    #expect(try options("--fail-with-body", "-O", "x").failsWithBody)
    #expect(try options("-O", "x").usesRemoteName)
    #expect(try options("-C", "-", "-o", "f", "x").session.resumes)
    #expect(try options("-o", "-", "--", "-x").url == "-x")
    #expect(try options("--max-time", "0", "--connect-timeout=0.0", "x").maxTime == nil)
  }

  @Test func otherInvocations() throws {
    #expect(try Invocation(parsing: ["check", "a", "--", "-b"]) == .check(CheckOptions(programs: ["a", "-b"])))
    #expect(try Invocation(parsing: ["check", "--mend", "a"]) == .check(CheckOptions(programs: ["a"], mends: true)))
    #expect(try Invocation(parsing: ["check", "-h"]) == .help(.check))
    #expect(try Invocation(parsing: ["get", "x", "-h"]) == .help(.get))
    #expect(try Invocation(parsing: ["help"]) == .help(.overview))
    #expect(try Invocation(parsing: ["--help"]) == .help(.overview))
    #expect(try Invocation(parsing: ["--version"]) == .version)
    // A URL or an option in place of a command.
    for words in [["http://a/"], ["a.b"], ["[::1]"], ["a:1", "-v"], ["-I", "a"], ["/x"]] {
      #expect(try Invocation(parsing: words[...]) == Invocation(parsing: (["get"] + words)[...]), "\(words)")
    }
    for topic in HelpTopic.allCases where topic != .overview {
      #expect(try Invocation(parsing: ["help", topic.rawValue]) == .help(topic))
      #expect(topic.text.hasSuffix("\n"))
    }
  }

  @Test(arguments: [
    ([], "a command is missing: get, socket, events, pins, check, transfers, completions or help"),
    (["fetch"], "unknown command fetch"), (["-x"], "-x needs a value"), (["-~"], "unknown option -~"),
    (["gte"], "unknown command gte (did you mean get?)"), (["evnets"], "unknown command evnets (did you mean events?)"),
    (["trans"], "unknown command trans (did you mean transfers?)"), (["g"], "unknown command g"),
    (["help", "event"], "there is no help on event (did you mean events?)"),
    (["transfers", "lsit"], "unknown action lsit (did you mean list?)"),
    (["get", "--heade", "x"], "unknown option --heade (did you mean --header?)"),
    (["get", "x", "-C", "5"], "-C wants -, the end of the file, and not \"5\""),
    (["get", "x", "-O", "-o", "f"], "--remote-name and --output exclude each other"),
    (["get", "x", "-f", "--fail-with-body"], "--fail and --fail-with-body exclude each other"),
    (["get", "x", "-I", "-d", "y"], "--head and --data exclude each other"),
    (["get", "x", "--digest", "--oauth2-bearer", "y"], "--digest and --oauth2-bearer exclude each other"),
    (["get", "x", "--max-redirs", "21"], "--max-redirs wants a number from 0 to 20, not \"21\""),
    (["get", "x", "--max-redirs", "-1"], "--max-redirs wants a number from 0 to 20, not \"-1\""),
    (["help", "nonsense"], "there is no help on nonsense"), (["help", "get", "x"], "there is no help on get x"),
    (["check"], "the program is missing"),
    (["check", ""], "the program's path is empty"), (["check", "-q"], "unknown option -q"),
    (["get"], "the URL is missing"), (["get", ""], "the URL is empty"),
    (["get", "a", "b"], "more than one URL: a and b"),
    (["get", "x", "-H", "nonsense"], "-H wants 'Name: value', not \"nonsense\""),
    (["get", "x", "-o", ""], "the file of -o has no name"),
    (["get", "x", "-X", "CONNECT"], "CONNECT is not a request for a resource"),
    (["get", "x", "--max-time", "soon"], "--max-time wants seconds, such as 2 or 0.5, not \"soon\""),
    (["get", "x", "--connect-timeout=-1"], "--connect-timeout wants seconds, such as 2 or 0.5, not \"-1\""),
  ])
  func errors(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: arguments[...]) }
    #expect(error?.description == message)
  }

  /// Each option has its entry in the help of its command, and the page of the command names all options.
  @Test func helpOnEachOption() throws {
    let root = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
    let page = String(
      decoding: try OpenFile(reading: root + "/Sources/Larkspur/Larkspur.docc/Command.md").readToEnd(), as: UTF8.self)
    func check<Options>(_ options: [CommandOption<Options>], _ topic: HelpTopic) {
      for option in options {
        #expect(topic.text.contains(option.entry.helpLines), "\(option.names.long)")
        #expect(page.contains("--\(option.names.long)`") || page.contains("--\(option.names.long) "), "\(option.names)")
      }
      #expect(Set(options.map(\.names.long)).count == options.count)
      let letters = options.compactMap(\.names.short)
      #expect(Set(letters).count == letters.count)
    }
    check(GetOptions.options, .get)
    check(SocketOptions.options, .socket)
    check(EventsOptions.options, .events)
    check(PinsOptions.options, .pins)
  }

  @Test func seconds() {
    let good: [(String, Duration)] = [
      ("0", .zero), ("1", .seconds(1)), ("0.25", .milliseconds(250)), (".5", .milliseconds(500)), ("2.", .seconds(2)),
      ("0.000000001", .nanoseconds(1)), ("0.0000000019", .nanoseconds(1)), ("999999999", .seconds(999_999_999)),
      ("007", .seconds(7)),
    ]
    for (text, duration) in good { #expect(Duration(seconds: text) == duration) }
    for text in [
      "", ".", "-1", "+1", "1e3", "1,5", "1.2.3", " 1", "1 ", "inf", "nan", "0x1", "1000000000", "1.-5", "١",
    ] {
      #expect(Duration(seconds: text) == nil, "\(text)")
    }
  }
}
