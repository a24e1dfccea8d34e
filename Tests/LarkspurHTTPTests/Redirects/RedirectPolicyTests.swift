import LarkspurHTTP
import Testing

@Suite struct RedirectPolicyTests {
  @Test func statuses() {
    let followed = (100...599).filter(RedirectPolicy.isFollowed)
    #expect(followed == [301, 302, 303, 305, 306, 307, 308])
  }

  @Test(arguments: ["GET", "HEAD", "POST", "PUT", "DELETE"])
  func whatBecomesAGet(method: String) {
    let statuses = (301...308).filter { RedirectPolicy.becomesGet(method, after: $0) }
    let expected: [Int] =
      switch method {
      case "GET", "HEAD": []
      case "POST": [301, 302, 303]
      default: [303]
      }
    #expect(statuses == expected)
  }

  @Test func fieldsOfOneOrigin() {
    for name in ["Host", "Cookie", "Authorization", "Proxy-Authorization", "cookie", "AUTHORIZATION"] {
      #expect(RedirectPolicy.isPrivate(name))
    }
    for name in ["", "Hosts", "Cookie2", "Authorisation", "Proxy-Authenticate", "Accept", "X-Authorization"] {
      #expect(!RedirectPolicy.isPrivate(name))
    }
  }

  /// Each change drops its own fields and no others.
  @Test func fieldsThatAreKept() {
    let names = ["Accept", "content-type", "Expect", "Cookie", "authorization", "referer", "X-Any"]
    func kept(_ set: (inout RedirectPolicy.Change) -> Void) -> [String] {
      var change = RedirectPolicy.Change()
      set(&change)
      return names.filter { RedirectPolicy.keeps($0, after: change) }
    }
    #expect(kept { _ in } == names)
    #expect(kept { $0.dropsBody = true } == ["Accept", "Cookie", "authorization", "referer", "X-Any"])
    #expect(kept { $0.leavesOrigin = true } == ["Accept", "content-type", "Expect", "referer", "X-Any"])
    #expect(kept { $0.leavesTLS = true } == ["Accept", "content-type", "Expect", "Cookie", "authorization", "X-Any"])
  }
}
