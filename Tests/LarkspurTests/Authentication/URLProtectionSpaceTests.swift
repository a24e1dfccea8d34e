import Foundation
import Larkspur
import Testing

@Suite struct URLProtectionSpaceTests {
  static func space(
    host: String = "a.example", port: Int = 443, protocol: String? = "https", realm: String? = "r",
    method: String? = NSURLAuthenticationMethodHTTPBasic
  ) -> URLProtectionSpace {
    URLProtectionSpace(host: host, port: port, protocol: `protocol`, realm: realm, authenticationMethod: method)
  }

  @Test func ofAServer() {
    let space = URLProtectionSpace(host: "h", port: 80, protocol: "http", realm: nil, authenticationMethod: nil)
    #expect(space.host == "h" && space.port == 80 && space.protocol == "http" && space.realm == nil)
    #expect(space.authenticationMethod == NSURLAuthenticationMethodDefault)
    #expect(!space.isProxy() && space.proxyType == nil)
    #expect(space.distinguishedNames == nil && space.serverTrust == nil)
    #expect(
      space.description.hasSuffix(
        ">: Host:h, Server:http, Auth-Scheme:NSURLAuthenticationMethodDefault, Realm:(null), Port:80, Proxy:NO, "
          + "Proxy-Type:(null)"))
  }

  /// The description names the authentication method as Foundation's description does.
  @Test(arguments: [
    (NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPBasic),
    (NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodServerTrust),
    ("unknown", NSURLAuthenticationMethodDefault), ("", NSURLAuthenticationMethodDefault),
  ])
  func methodsInWords(method: String, shown: String) {
    let space = Self.space(method: method)
    #expect(space.authenticationMethod == method && space.description.contains("Auth-Scheme:\(shown), "))
  }

  @Test func ofAProxy() {
    let space = URLProtectionSpace(
      proxyHost: "p", port: 3128, type: NSURLProtectionSpaceHTTPProxy, realm: "r",
      authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
    #expect(space.isProxy() && space.proxyType == NSURLProtectionSpaceHTTPProxy && space.protocol == nil)
    #expect(space.description.contains("Server:(null), ") && space.description.contains("Proxy:YES"))
  }

  @Test(arguments: [
    ("http", false), ("https", true), ("HTTPS", true), ("ftp", false), ("ftps", true),
    (NSURLProtectionSpaceHTTPS, true), (NSURLProtectionSpaceHTTP, false), (nil, false),
  ])
  func security(protocol: String?, isSecure: Bool) {
    #expect(Self.space(protocol: `protocol`).receivesCredentialSecurely == isSecure)
    #expect(
      Self.space(protocol: `protocol`, method: NSURLAuthenticationMethodHTTPDigest).receivesCredentialSecurely
        == isSecure)
  }

  @Test(arguments: [
    (NSURLProtectionSpaceHTTPProxy, false), (NSURLProtectionSpaceHTTPSProxy, true),
    (NSURLProtectionSpaceSOCKSProxy, false), (nil, false),
  ])
  func securityOfProxies(type: String?, isSecure: Bool) {
    let space = URLProtectionSpace(proxyHost: "p", port: 1, type: type, realm: nil, authenticationMethod: nil)
    #expect(space.receivesCredentialSecurely == isSecure)
  }

  @Test func equality() {
    let space = Self.space()
    for same in [Self.space(), Self.space(host: "A.Example")] {
      #expect(space == same && space.hash == same.hash)
    }
    #expect((space.copy() as? URLProtectionSpace) === space)
    let others = [
      Self.space(host: "b.example"), Self.space(port: 444), Self.space(protocol: "http"), Self.space(realm: "R"),
      Self.space(realm: nil), Self.space(method: NSURLAuthenticationMethodHTTPDigest),
      URLProtectionSpace(
        proxyHost: "a.example", port: 443, type: nil, realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic),
    ]
    for other in others { #expect(space != other) }
    #expect(Set(others + [space, Self.space()]).count == others.count + 1)
    #expect(!space.isEqual(nil) && !space.isEqual("a.example"))
  }
}
