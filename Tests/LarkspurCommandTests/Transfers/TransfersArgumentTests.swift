import LarkspurCommand
import Testing

@Suite struct TransfersArgumentTests {
  private func parsed(_ words: String...) throws -> Invocation { try Invocation(parsing: (["transfers"] + words)[...]) }

  @Test func actions() throws {
    for action in TransfersOptions.Action.allCases where ![.pause, .resume, .cancel].contains(action) {
      #expect(try parsed(action.rawValue) == .transfers(TransfersOptions(action)))
    }
    var expected = TransfersOptions(.pause)
    expected.session = "a b"
    #expect(try parsed("pause", "a b") == .transfers(expected))
    expected.tasks = [1, 4_294_967_295]
    #expect(try parsed("pause", "a b", "1", "4294967295") == .transfers(expected))
    expected = TransfersOptions(.run)
    #expect(expected.idleTime == .seconds(60))
    expected.idleTime = .milliseconds(500)
    #expect(try parsed("run", "--foreground", "--idle-time", "0.5") == .transfers(expected))
    #expect(try parsed("run", "-h") == .help(.transfers))
  }

  @Test(arguments: [
    ([], "an action is missing: run, list, pause, resume, cancel, log or deliver"), (["stop"], "unknown action stop"),
    (["list", "a"], "list takes no operand: a"), (["cancel"], "the session is missing"),
    (["cancel", ""], "the session is empty"), (["resume", "a", "0"], "a task is a number, not 0"),
    (["resume", "a", "x"], "a task is a number, not x"),
    (["list", "--foreground"], "--idle-time and --foreground belong to run"),
    (["log", "--idle-time", "1"], "--idle-time and --foreground belong to run"),
    (["run", "--idle-time", "0"], "--idle-time wants more than 0 seconds"),
    (["run", "--idle-time", "soon"], "--idle-time wants seconds, such as 2 or 0.5, not \"soon\""),
  ])
  func errors(arguments: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["transfers"] + arguments)[...]) }
    #expect(error?.description == message)
    #expect(error?.topic == .transfers)
  }
}
