import Foundation
import LarkspurTestServer
import LarkspurTransport
import Testing

@testable import Larkspur

/// Bodies that are given as data.
@Suite(.timeLimit(.minutes(1))) struct UploadBodyTests {
  /// Large data is sent from the caller's memory: nothing of it is copied before it leaves.
  @Test func largeDataIsLent() throws {
    let bytes = TestServer.content(count: 300_000)
    // The indices of a slice do not begin at 0.
    let data = Data(bytes).dropFirst(1_000)
    guard case .lent(let count, let copy) = UploadBody(data).content else {
      Issue.record("the data is copied")
      return
    }
    #expect(count == 299_000)
    #expect(copy(0..<10) == Array(bytes[1_000..<1_010]) && copy(298_990..<299_000) == Array(bytes.suffix(10)))
    guard case .bytes(let few) = UploadBody(data.prefix(10)).content else {
      Issue.record("little data is not copied")
      return
    }
    #expect(few == Array(bytes[1_000..<1_010]))
  }

  @Test(arguments: ["POST", "PUT"], [true, false]) func aSliceIsSentWhole(method: String, isOfRequest: Bool)
    async throws
  {
    let server = try TestServer()
    server.route(method, "/body") { _ in .text("taken") }
    let bytes = TestServer.content(count: 1_000_000)
    let data = Data(bytes).dropFirst(7)
    var request = URLRequest(url: try #require(URL(string: server.url("/body"))))
    request.httpMethod = method
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    if isOfRequest {
      request.httpBody = data
      _ = try await session.data(for: request)
    } else {
      _ = try await session.upload(for: request, from: data)
    }
    #expect(server.requests.map(\.body) == [Array(bytes.dropFirst(7))])
  }
}
