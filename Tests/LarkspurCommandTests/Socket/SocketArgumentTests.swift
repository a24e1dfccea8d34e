import LarkspurCommand
import LarkspurHTTP
import Testing

@Suite struct SocketArgumentTests {
  private func options(_ words: String...) throws -> SocketOptions {
    guard case .socket(let options) = try Invocation(parsing: (["socket"] + words)[...]) else {
      throw UsageError("no socket")
    }
    return options
  }

  @Test func everyOption() throws {
    var expected = SocketOptions()
    expected.request.url = "wss://example.org/chat"
    #expect(try options("wss://example.org/chat") == expected)
    #expect(expected.offersCompression && !expected.isBinary && expected.pingInterval == nil)
    expected.isBinary = true
    expected.pingInterval = .milliseconds(2500)
    expected.protocols = ["chat", "x-1"]
    expected.offersCompression = false
    expected.request.maxTime = .seconds(3)
    expected.request.isVerbose = true
    expected.request.fields = [.init("A", "1"), .init("B", "")]
    expected.request.proxy = "p:1"
    expected.request.proxyExceptions = "a"
    expected.request.tls.isInsecure = true
    #expect(
      try options(
        "--binary", "--ping", "2.5", "wss://example.org/chat", "--protocol=chat", "--protocol", "x-1",
        "--no-compression", "--max-time", "3", "-vkH", "A: 1", "-HB:", "-xp:1", "--noproxy=a") == expected)
    #expect(try options("x", "--ping", "0").pingInterval == nil)
    #expect(try Invocation(parsing: ["socket", "x", "-h"]) == .help(.socket))
  }

  @Test(arguments: [
    ([], "the URL is missing"), ([""], "the URL is empty"), (["a", "b"], "more than one URL: a and b"),
    (["a", "-"], "more than one URL: a and -"),
    (["x", "--ping", "soon"], "--ping wants seconds, such as 2 or 0.5, not \"soon\""),
    (["x", "--max-time", "-1"], "--max-time wants seconds, such as 2 or 0.5, not \"-1\""),
    (["x", "--protocol", "a b"], "--protocol wants a name without blanks and commas, not \"a b\""),
    (["x", "--protocol", "a,b"], "--protocol wants a name without blanks and commas, not \"a,b\""),
    (["x", "--protocol", ""], "--protocol wants a name without blanks and commas, not \"\""),
    (["x", "--protocol", "a", "--protocol", "a"], "--protocol a is given twice"),
    (["x", "-H", "nonsense"], "-H wants 'Name: value', not \"nonsense\""),
    (["x", "--tls-min", "1.3", "--tls-max", "1.2"], "--tls-min 1.3 is above --tls-max 1.2"),
    (["x", "--dangerously-log-keys"], "unknown option --dangerously-log-keys"),
    (["x", "-d", "y"], "unknown option -d"),
    (["x", "--binary=1"], "--binary takes no value"),
  ])
  func errors(words: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["socket"] + words)[...]) }
    #expect(error?.description == message)
    #expect(error?.topic == .socket)
  }
}
