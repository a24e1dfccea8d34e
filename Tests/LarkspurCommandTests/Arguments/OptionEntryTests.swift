import Testing

@testable import LarkspurCommand

@Suite struct OptionEntryTests {
  /// Each option has a text, and each of `get` a purpose.
  @Test(arguments: HelpTopic.commands) func everyOptionHasATextAndAPurpose(topic: HelpTopic) {
    for entry in topic.options {
      #expect(entry.help.hasSuffix(".") || entry.help.hasSuffix(")"), "\(entry.names.long)")
      #expect(!entry.summary.isEmpty)
      #expect(entry.names.takesValue == !entry.value.isEmpty)
      #expect(topic != .get || entry.group != .command, "\(entry.names.long)")
    }
  }

  @Test func theHelpHasATitleForEachPurpose() {
    let titles = HelpTopic.get.text.split(separator: "\n").filter { $0.hasSuffix(":") && !$0.hasPrefix(" ") }
    #expect(titles.map { String($0.dropLast()) } == HelpTopic.get.options.groups.map(\.title))
    #expect(titles.count > 6)
    #expect(!HelpTopic.completions.text.contains(OptionGroup.command.rawValue))
  }

  @Test func summary() {
    let entry = { (help: String) in OptionEntry(names: .init("a", "b"), value: "", help: help).summary }
    #expect(entry("One. Two.") == "One")
    #expect(entry("Only 1.5 times.") == "Only 1.5 times")
    #expect(entry("None") == "None")
  }
}
