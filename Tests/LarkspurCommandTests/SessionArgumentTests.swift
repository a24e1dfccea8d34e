import LarkspurBytes
import Testing
import larkspur

/// The options that `larkspur get` leaves to a session.
@Suite struct SessionArgumentTests {
  private func options(_ words: String...) throws -> GetOptions {
    guard case .get(let options) = try Invocation(parsing: (["get"] + words)[...]) else { throw UsageError("no get") }
    return options
  }

  @Test func everyOption() throws {
    let first = try options(
      "x", "-L", "-u", "me:a:b", "--digest", "--cookie-jar", "jar", "--compressed", "--limit-rate=2K", "--metrics",
      "-F", "a=b=c;type=x", "-Ff=@dir/file;type=text/plain;filename=other", "--form", "e="
    ).session
    #expect(first.followsRedirects && first.usesDigest && first.decodes && first.showsMetrics)
    #expect(!first.resumes && !first.isJSON)
    #expect(first.credentials == .init("me", "a:b"))
    #expect(first.cookieJar == "jar")
    #expect(first.bytesPerSecondMax == 2048)
    #expect(
      first.parts == [
        .init("a", .text("b=c"), type: "x"), .init("f", .file("dir/file"), type: "text/plain", fileName: "other"),
        .init("e", .text("")),
      ])
    #expect(first.name == "location")
    let second = try options("x", "-Co", "file")
    #expect(second.session.resumes)
    #expect(second.output == "file")
    let third = try options("x", "--json", "{", "--json=@y", "--json", "@-")
    #expect(third.session.isJSON)
    #expect(third.data == [.text("{"), .file("y"), .standardInput])
    #expect(try options("x", "-d", "a").session.name == nil)
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
    (["-F", "a=@b;c=d"], "-F knows ;type= and ;filename= behind a file, not \"c=d\""),
    (["-F", "a=<b"], "-F NAME=<FILE is not supported: a file is sent as one, by NAME=@FILE"),
    (["http://u:secret@h/"], "more than one URL: x and http://h/"), (["u:secret@h/y"], "more than one URL: x and h/y"),
    (["-"], "more than one URL: x and - (-C finds out by itself where to go on)"),
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
    (["-L", "--connect-timeout", "1"], "--connect-timeout and --location exclude each other"),
    (["--metrics", "--dangerously-log-keys"], "--dangerously-log-keys and --metrics exclude each other"),
  ])
  func errors(words: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["get", "x"] + words)[...]) }
    #expect(error?.description == message)
  }

  @Test func theTypeOfAText() throws {
    #expect(try options("x", "-F", "a=b;c;type=text/x-d").session.parts == [.init("a", .text("b;c"), type: "text/x-d")])
    #expect(try options("x", "-F", "a=b;type").session.parts == [.init("a", .text("b;type"))])
  }

  /// A piece that comes before its time is slept off; one that comes late is not.
  @Test func pace() {
    let start = Deadline(nanoseconds: 1_000_000_000)
    var pace = Pace(bytesPerSecondMax: 1000, now: start)
    #expect(pace.pause(after: 500, now: start) == .milliseconds(500))
    #expect(pace.pause(after: 500, now: start.advanced(by: .milliseconds(500))) == .milliseconds(500))
    #expect(pace.pause(after: 100, now: start.advanced(by: .seconds(5))) <= .zero)
  }
}
