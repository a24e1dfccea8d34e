import Foundation
import FoundationNetworking
import Testing
import Untouched

@testable import Loading

@Suite struct LoadingTests {
  @Test func thePackagesTypesAreLarkspurs() {
    #expect(String(reflecting: URLRequest.self) == "Larkspur.URLRequest")
    #expect(NetworkRequest.self == URLRequest.self)
  }

  @Test func mocks() async throws {
    final class Mock: Transport {
      func data(for request: URLRequest) async throws -> (Data, URLResponse) { (Data("mine".utf8), URLResponse()) }
    }
    let url = try #require(URL(string: "http://a.example/"))
    #expect(try await Client(transport: Mock()).text(at: url).text == "mine")
  }

  @Test func subclasses() async throws {
    final class Mine: StubProtocol, @unchecked Sendable {
      override class func canInit(with request: URLRequest) -> Bool { true }
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [Mine.self]
    let url = try #require(URL(string: "http://a.example/mine"))
    let (data, _) = try await makeSession(configuration).data(from: url)
    #expect(String(decoding: data, as: UTF8.self) == "/mine")
  }
}
