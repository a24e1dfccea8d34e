import Foundation
import Larkspur
import TestKit
import Testing

/// Trailers and compressed bodies, with a server of Python's standard library, which reads chunks and trailers itself and
/// decompresses by zlib.
@Suite(.ownThread, .timeLimit(.minutes(1))) struct MessageOptionTests {
  private let server: OptionServer
  private let session = URLSession(configuration: .ephemeral)

  init() throws { server = try OptionServer.get() }

  private func report(
    _ body: Data? = nil, stream: Data? = nil, _ change: (inout URLRequest) -> Void
  ) async throws -> OptionServer.Report {
    var request = URLRequest(url: try server.url("/echo"))
    request.httpMethod = "POST"
    request.httpBody = body
    if let stream { request.httpBodyStream = InputStream(data: stream) }
    change(&request)
    return try OptionServer.Report(try await session.load(request).data)
  }

  @Test func trailersOfAResponse() async throws {
    let (_, data, response) = try await session.load(server.url("/trailers"))
    #expect(data == Data("onetwo".utf8) && response.trailerFields == ["X-Sum": "6"])
  }

  @Test func trailersOfARequest() async throws {
    let report = try await report(stream: Data(OptionServer.content(100_000))) {
      $0.setTrailers(["X-Sum"]) { ["X-Sum": "sum"] }
    }
    #expect(report.trailers == ["X-Sum": "sum"] && report.announced == "X-Sum")
    #expect(report.content == 100_000 && report.isRight)
  }

  /// Short data has a length, and long data and streams have none.
  @Test(arguments: [10_000, 1_000_000]) func compressedBodies(count: Int) async throws {
    let content = Data(OptionServer.content(count))
    for isStream in [false, true] {
      let report = try await report(isStream ? nil : content, stream: isStream ? content : nil) {
        $0.bodyCompression = .gzip
      }
      #expect(report.coding == "gzip" && report.content == count && report.isRight && report.sent < count / 10)
      #expect(report.length == (isStream || count > 65_536 ? nil : "\(report.sent)"))
    }
  }

  @Test func aCompressedStreamWithTrailers() async throws {
    let report = try await report(stream: Data(OptionServer.content(300_000))) {
      $0.bodyCompression = .gzip
      $0.setTrailers(["X-Sum"]) { ["X-Sum": "sum"] }
    }
    #expect(report.trailers == ["X-Sum": "sum"] && report.coding == "gzip")
    #expect(report.content == 300_000 && report.isRight)
  }
}
