import LarkspurCommand
import LarkspurHTTP
import LarkspurTransport
import Testing

/// Tests the options of `larkspur get` for what a session does beyond one request.
@Suite struct SessionArgumentTests {
  private func options(_ arguments: String...) throws -> GetOptions {
    guard case .get(let options) = try Invocation(parsing: (["get"] + arguments)[...]) else {
      throw UsageError("no get")
    }
    return options
  }

  @Test func everyOption() throws {
    let first = try options(
      "x", "-L", "-u", "me:a:b", "--digest", "--cookie-jar", "jar", "--compressed", "--limit-rate=2K", "--metrics",
      "-F", "a=b=c;type=x", "-Ff=@dir/file;type=text/plain;filename=other", "--form", "e="
    ).session
    #expect(first.followsRedirects && first.usesDigest && first.decodes && first.showsMetrics)
    #expect(!first.resumes && !first.isJSON)
    #expect(first.credentials == .init(user: Array("me".utf8), password: Array("a:b".utf8)))
    #expect(first.cookieJar.output == "jar")
    #expect(first.bytesPerSecondMax == 2048)
    #expect(
      first.parts == [
        .init("a", .text("b=c"), type: "x"), .init("f", .file("dir/file"), type: "text/plain", fileName: "other"),
        .init("e", .text("")),
      ])
    let second = try options("x", "-C", "-", "-o", "file")
    #expect(second.session.resumes)
    #expect(second.output == "file")
    let third = try options("x", "--json", "{", "--json=@y", "--json", "@-")
    #expect(third.session.isJSON)
    #expect(third.data == [.text("{"), .file("y"), .file("-")])
  }

  @Test(arguments: [("1", 1), ("500k", 512_000), ("2M", 2 << 20), ("1G", 1 << 30), ("9000000000000000000G", .max)])
  func rates(text: String, rate: Int) throws {
    #expect(try options("x", "--limit-rate", text).session.bytesPerSecondMax == rate)
  }

  @Test(arguments: [
    (["--user", "me"], "--user wants USER:PASSWORD"),
    (["--cookie-jar", ""], "the file of --cookie-jar has no name"),
    (["--limit-rate", "0"], "--limit-rate wants bytes per second, such as 500K or 2M, not \"0\""),
    (["--limit-rate", "K"], "--limit-rate wants bytes per second, such as 500K or 2M, not \"K\""),
    (["--limit-rate", "-5"], "--limit-rate wants bytes per second, such as 500K or 2M, not \"-5\""),
    (["--limit-rate", "+5"], "--limit-rate wants bytes per second, such as 500K or 2M, not \"+5\""),
    (["-F", "nothing"], "-F wants NAME=TEXT or NAME=@FILE, not \"nothing\""),
    (["-F", "=x"], "-F wants NAME=TEXT or NAME=@FILE, not \"=x\""),
    (
      ["-F", "a=@b;c=d"],
      "-F knows ;type=, ;filename= and ;headers=, not \"c=d\" (double quotes keep semicolons)"
    ),
    (
      ["-F", "a=b;filename=c;d"],
      "-F knows ;type=, ;filename= and ;headers=, not \"d\" (double quotes keep semicolons)"
    ),
    (
      ["-F", "a=b;encoder=base64"],
      "-F knows ;type=, ;filename= and ;headers=, not \"encoder=base64\" (double quotes keep semicolons)"
    ),
    (["-F", "a=@b,c"], "-F sends one file at a time: a name with a comma has to stand in double quotes"),
    (["-F", "a=@b;type=c/d,e"], "-F sends one file at a time: a name with a comma has to stand in double quotes"),
    (["-F", "a=\"b\" c"], "-F: something stands behind the closing quote: c"),
    (["-F", "a=b;type= ;filename=c"], "-F: the type is missing behind ;type="),
    (["-F", "a=b;headers=c"], "-F ;headers= wants 'Name: value', not \"c\""),
    (["-F", "a=b;headers=c d: e"], "-F: \"c d: e\" cannot be a field of a part"),
    (["-F", "a=b;headers=\"c: d\r\ne: f\""], "-F: \"c: d\\r\\ne: f\" cannot be a field of a part"),
    (
      ["-F", "a=b;headers=@c"],
      "-F ;headers=@FILE is not supported: a field is given by ;headers='Name: value'"
    ),
    (["-F", "a=<b"], "-F NAME=<FILE is not supported: a file is sent as one, by NAME=@FILE"),
    (["http://u:secret@h/"], "more than one URL: x and http://h/"), (["u:secret@h/y"], "more than one URL: x and h/y"),
    (["-"], "more than one URL: x and -"),
    (["-F", "a=b", "-d", "c"], "--form and --data exclude each other"),
    (["-F", "a=b", "--json", "c"], "--form and --json exclude each other"),
    (["-d", "b", "--json", "c"], "--data and --json exclude each other"),
    (["--json", "c", "-d", "b"], "--data and --json exclude each other"),
    (["--resume"], "--resume needs -o: there has to be a file to go on with"),
    (["--resume", "-o", "-"], "--resume needs -o: there has to be a file to go on with"),
    (["--resume", "-o", "f", "-d", "x"], "--resume is for GET only"),
    (["--resume", "-o", "f", "-F", "x=y"], "--resume is for GET only"),
    (["--resume", "-o", "f", "-X", "PUT"], "--resume is for GET only"),
    (["--resume", "-o", "f", "-i"], "--resume and --include exclude each other"),
    (["--compressed", "--resume", "-o", "f"], "--resume and --compressed exclude each other"),
  ])
  func errors(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["get", "x"] + arguments)[...]) }
    #expect(error?.description == message)
  }

  @Test func theTypeOfAText() throws {
    #expect(try options("x", "-F", "a=b;c;type=text/x-d").session.parts == [.init("a", .text("b;c"), type: "text/x-d")])
    #expect(try options("x", "-F", "a=b;type").session.parts == [.init("a", .text("b;type"))])
  }

  /// The expected values are those that curl 7.88.1 sends.
  @Test(
    arguments: [
      ("n=x;type=text/html;charset=utf-8", .init("n", .text("x"), type: "text/html;charset=utf-8")),
      ("n=x; type=text/html ; charset=utf-8 ", .init("n", .text("x"), type: "text/html ; charset=utf-8")),
      (
        "n=x;type=text/html;charset=utf-8;filename=y",
        .init("n", .text("x"), type: "text/html;charset=utf-8", fileName: "y")
      ),
      ("n=x;filename=y;TYPE=a/b", .init("n", .text("x"), type: "a/b", fileName: "y")),
      ("n=x;filename=\"a;b,\\\"c\\\\d\"", .init("n", .text("x"), fileName: "a;b,\"c\\d")),
      ("n=x;filename= y ", .init("n", .text("x"), fileName: "y")),
      ("n=x;filename=", .init("n", .text("x"), fileName: "")),
      ("n=\"x;y\"", .init("n", .text("x;y"))), ("n=\" x \";type=a/b", .init("n", .text(" x "), type: "a/b")),
      ("n= \"x\" ;type=a/b", .init("n", .text("x"), type: "a/b")),
      ("n=\"x;type=a/b", .init("n", .text("\"x"), type: "a/b")), ("n=  x y  ", .init("n", .text("x y"))),
      ("n={\"a\": \"b\",\"c\":1}", .init("n", .text("{\"a\": \"b\",\"c\":1}"))),
      (
        "b=\" \\\\value1;type=\\\"whatever\\\" \"; type=text/foo; charset=utf-8 ; filename=param_b",
        .init("b", .text(" \\value1;type=\"whatever\" "), type: "text/foo; charset=utf-8", fileName: "param_b")
      ),
      (
        "n=x;headers=\"X-A: b; c\";headers=X-B:d",
        .init("n", .text("x"), fields: [.init("X-A", "b; c"), .init("X-B", "d")])
      ),
      ("n=;type=a/b", .init("n", .text(""), type: "a/b")), ("n=a=b", .init("n", .text("a=b"))),
      ("n=@\"a;b,c\";type=a/b;p=\"q\"", .init("n", .file("a;b,c"), type: "a/b;p=\"q\"")),
      ("n=@ a ; filename=\"d\" ", .init("n", .file("a"), fileName: "d")),
      ("n=@-;filename=x;headers=X: y", .init("n", .file("-"), fileName: "x", fields: [.init("X", "y")])),
    ] as [(String, SessionOptions.Part)])
  func partsOfForms(text: String, part: SessionOptions.Part) throws {
    #expect(try options("x", "-F", text).session.parts == [part])
  }

  @Test func lowestRate() throws {
    let rate = try options("x", "--lowest-rate", "2K:1.5").timeouts.lowestRate
    #expect(rate == .init(bytes: 2048, over: .milliseconds(1500)))
    for text in ["1", "0:1", "1:0", ":1", "1:", "1:2:3", "-1:2"] {
      #expect(throws: UsageError.self) { try options("x", "--lowest-rate", text) }
    }
  }
}
