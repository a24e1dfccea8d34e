import Testing
import ZipArchive

@Suite struct LinkTargetTests {
  @Test(arguments: [
    ("b", true), ("./b", true), ("../b", true), ("../x/b", true), (".", true), ("..", true), ("../..", false),
    ("../../b", false), ("b/..", false),
    ("b/../c", false), ("/tmp/out/b", true), ("/tmp/out", true), ("/tmp/outside", false), ("/tmp/out/../b", false),
    ("/etc/passwd", false), ("/", false), ("", false), ("a\0b", false), ("../../out/b", true), ("../../../b", false),
    ("../../../../../../b", false),
  ])
  func fromADirectory(target: String, stays: Bool) {
    // The link is in /tmp/out/a.
    #expect(LinkTarget.stays(target, from: ["tmp", "out", "a"], within: ["tmp", "out"]) == stays)
  }

  @Test func length() {
    let longest = String(repeating: "a", count: 4095)
    #expect(LinkTarget.stays(longest, from: ["d"], within: ["d"]))
    #expect(!LinkTarget.stays(longest + "a", from: ["d"], within: ["d"]))
  }

  /// The place of the destination is not known when an archive is written.
  @Test(arguments: [
    ("b", true), ("../b", true), ("..", true), ("../..", false), ("../../out/a", false), ("/out/a/b", false),
    ("/", false),
    ("", false), ("b/../c", false),
  ])
  func inAnyDestination(target: String, stays: Bool) {
    #expect(LinkTarget.staysInAnyDestination(target, from: ["a"]) == stays)
  }
}
