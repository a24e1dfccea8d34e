import Testing

@Suite struct WholeCommandTests {
  @Test(arguments: [
    ["help"], ["--help"], ["help", "get"], ["get", "--help"], ["help", "pins"], ["pins", "-h"],
    ["help", "check"], ["help", "socket"], ["socket", "-h"], ["help", "events"], ["events", "--help"],
    ["help", "exit-status"],
  ])
  func help(arguments: [String]) async throws {
    let result = try await Command(arguments).end()
    #expect(result.status == 0)
    #expect(result.errors == "")
    #expect(result.text.contains("larkspur"))
    #expect(result.text.split(separator: "\n").allSatisfy { $0.count <= 120 })
  }

  @Test func version() async throws {
    let result = try await Command.run("--version")
    #expect(result.status == 0)
    #expect(result.text == "larkspur unreleased\n")
  }
}
