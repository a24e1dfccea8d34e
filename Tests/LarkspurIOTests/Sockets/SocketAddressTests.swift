import LarkspurIO
import Testing

/// Addresses as text, and the names of network interfaces.
@Suite struct SocketAddressTests {
  @Test(arguments: [
    (SocketAddress.ipv4(0xc000_0201, port: 80), "192.0.2.1:80"),
    (.loopback(port: 0), "127.0.0.1:0"),
    (.ipv6(high: 0, low: 1, scope: 0, port: 443), "[::1]:443"),
    (.ipv6(high: 0xfe80_0000_0000_0000, low: 1, scope: 2, port: 1), "[fe80::1%2]:1"),
    // RFC 5952 4.2.3: the longest run of zeros is shortened, and the first one of two.
    (.ipv6(high: 0x2001_0db8_0000_0000, low: 0x0001_0000_0000_0001, scope: 0, port: 1), "[2001:db8::1:0:0:1]:1"),
    (.ipv6(high: 0, low: 0, scope: 0, port: 1), "[::]:1"),
    (.unix(path: "/run/a.socket"), "unix:/run/a.socket"),
    (.unix(path: "\0name"), "unix:@name"),
  ]) func asText(_ address: SocketAddress, _ text: String) {
    #expect(address.description == text)
  }

  @Test func aPortIsReplaced() {
    #expect(SocketAddress.loopback(port: 1).with(port: 2) == .loopback(port: 2))
    #expect(SocketAddress.ipv6(high: 1, low: 2, scope: 3, port: 4).with(port: 5).port == 5)
    #expect(SocketAddress.unix(path: "/a").with(port: 5) == .unix(path: "/a"))
    #expect(SocketAddress.unix(path: "/a").port == 0)
  }

  /// A zone is the name of an interface or its index.
  @Test func zones() throws {
    let kernel = LinuxKernel.shared
    #expect(NetworkInterface.index(ofZone: "7", kernel: kernel) == 7)
    #expect(NetworkInterface.index(ofZone: "0", kernel: kernel) == nil)
    #expect(NetworkInterface.index(ofZone: "+7", kernel: kernel) == nil)
    #expect(NetworkInterface.index(ofZone: "no such", kernel: kernel) == nil)
    #expect(NetworkInterface.index(ofZone: "lo", kernel: kernel) != nil)
    let address = try SocketAddress(literal: "fe80::1%9", port: 80, kernel: kernel)
    #expect(address == .ipv6(high: 0xfe80_0000_0000_0000, low: 1, scope: 9, port: 80))
    #expect(try SocketAddress(literal: "::1%9", port: 80, kernel: kernel) == nil)
    #expect(throws: SocketAddress.UnknownZone.self) {
      _ = try SocketAddress(literal: "fe80::1%nosuch0", port: 80, kernel: kernel)
    }
  }

  @Test(arguments: [("eth0", true), ("", false), ("a b", false), ("a/b", false), ("0123456789abcde", true)])
  func namesOfInterfaces(_ name: String, _ isName: Bool) {
    #expect(NetworkInterface.isName(name) == isName)
    #expect(!NetworkInterface.isName(name + "0123456789abcdef"))
  }
}
