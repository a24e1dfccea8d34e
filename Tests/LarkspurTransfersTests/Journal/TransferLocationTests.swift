import LarkspurTransfers
import Testing

@Suite struct TransferLocationTests {
  @Test(
    arguments: [
      (["XDG_STATE_HOME": "/state", "HOME": "/home/me"], "/state"),
      (["XDG_STATE_HOME": "state", "HOME": "/home/me"], "/home/me/.local/state"),
      (["XDG_STATE_HOME": "", "HOME": "/home/me"], "/home/me/.local/state"),
      (["HOME": "/home/me"], "/home/me/.local/state"), (["HOME": "home"], nil), ([:], nil),
    ] as [([String: String], String?)])
  func stateHome(environment: [String: String], expected: String?) {
    #expect(TransferLocation.stateHome { environment[$0] } == expected)
  }

  @Test func directories() {
    #expect(
      TransferLocation.directory(stateHome: "/s", program: "app", session: "com.example/a")
        == "/s/larkspur/transfers/app/com.example%2Fa")
    #expect(
      TransferLocation.directory(stateHome: "/s", program: "..", session: "..") == "/s/larkspur/transfers/%2E./%2E.")
    #expect(
      TransferLocation.directory(stateHome: "/s", container: "group.a", session: "b")
        == "/s/larkspur/groups/group.a/transfers/b")
  }

  /// Only such directories are written to when a message names them.
  @Test(
    arguments: [
      ("/s/larkspur/transfers/app/com.example%2Fa", true), ("/s//larkspur/transfers/app/a/", true),
      ("/s/larkspur/groups/group.a/transfers/b", true), ("/s/larkspur/transfers/%2E./%2E.", true),
      ("/s/larkspur/transfers/app", false), ("/s/larkspur/transfers/app/a/b", false), ("/s/larkspur", false),
      ("/s/larkspur/groups/a/b", false), ("/s/larkspur/groups/a/other/b", false), ("/s", false), ("", false),
      ("/home/me/documents", false), ("/t/larkspur/transfers/app/a", false), ("s/larkspur/transfers/app/a", false),
      ("/s/larkspur/transfers/../a", false), ("/s/larkspur/transfers/./a", false),
      ("/s/larkspur/transfers/app/..", false),
      ("/s/larkspur/transfers/.app/a", false), ("/s/larkspur/transfers/app/a\u{0}", false),
      ("/s/larkspur/transfers/app/a\n", false),
      ("/s/larkspur/transfers/app/" + String(repeating: "a", count: 300), false),
    ])
  func directoriesOfSessions(path: String, expected: Bool) {
    #expect(TransferLocation.isDirectory(path, stateHome: "/s") == expected)
    #expect(TransferLocation.isDirectory(path, stateHome: "/s/") == expected)
    #expect(!TransferLocation.isDirectory(path, stateHome: "s"))
  }
}
