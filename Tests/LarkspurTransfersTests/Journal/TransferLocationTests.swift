import Testing

@testable import LarkspurTransfers

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
}
