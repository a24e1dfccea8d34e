import LarkspurHTTP
import Testing

/// Tests users and passwords in URLs.
@Suite struct UserInfoTests {
  @Test(arguments: [
    ("host", nil, "host"), ("@host", ":", "host"), ("u@host", "u:", "host"), ("u:p@host:1", "u:p", "host:1"),
    ("u:p:q@r@host", "u:p:q@r", "host"), ("u%3Av:%40@host", "u:v:@", "host"), ("u%4:%@host", "u%4:%", "host"),
  ])
  func authorities(text: String, bytes: String?, host: String) {
    var rest = Array(text.utf8)[...]
    let info = UserInfo.take(from: &rest)
    #expect(info?.bytes == bytes.map { Array($0.utf8) })
    #expect(String(decoding: rest, as: UTF8.self) == host)
  }

  @Test func authorization() {
    let info = UserInfo(user: Array("Aladdin".utf8), password: Array("open sesame".utf8))
    #expect(info.basicAuthorization == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
  }
}
