import Foundation
import Glibc
import Larkspur
import LarkspurTestServer
import Testing

/// Tests the traffic class (`IP_TOS`) that follows from a request's network service type.
@Suite(.serialized) struct TrafficClassTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// The traffic classes of this process's connections to the server, as the kernel reports them.
  private func marks() -> [Int32] {
    var marks: [Int32] = []
    for descriptor in Int32(0)..<1024 {
      var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
      let isPeer = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
      }
      guard isPeer, address.sin_family == sa_family_t(AF_INET), Int(UInt16(bigEndian: address.sin_port)) == server.port
      else { continue }
      var (mark, size) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
      getsockopt(descriptor, Int32(IPPROTO_IP), IP_TOS, &mark, &size)
      marks.append(mark)
    }
    return marks.sorted()
  }

  private func load(_ type: URLRequest.NetworkServiceType, by session: URLSession) async throws {
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(server.port)/get")))
    request.networkServiceType = type
    _ = try await session.data(for: request)
  }

  @Test func eachHasItsConnection() async throws {
    let session = URLSession(configuration: .ephemeral)
    try await load(.default, by: session)
    #expect(marks() == [0])
    try await load(.background, by: session)
    try await load(.voice, by: session)
    #expect(marks() == [0, 0x20, 0xb8])
    try await load(.background, by: session)
    try await load(.default, by: session)
    #expect(marks() == [0, 0x20, 0xb8])
    #expect(server.connectionsAccepted == 3)
    session.invalidateAndCancel()
  }

  @Test func theConfigurationSpeaksForRequestsThatSayNothing() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.networkServiceType = .background
    let session = URLSession(configuration: configuration)
    try await load(.default, by: session)
    #expect(marks() == [0x20])
    try await load(.avStreaming, by: session)
    #expect(marks() == [0x20, 0x88])
    session.invalidateAndCancel()
  }
}
