import Foundation
import Testing

@testable import Larkspur

@Suite struct TransferRetryTests {
  @Test func theServersWord() throws {
    let url = try #require(URL(string: "http://example.com/"))
    func delay(_ status: Int, _ retryAfter: String?) -> Double? {
      let fields = retryAfter.map { ["Retry-After": $0] }
      return HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields)
        .flatMap { TransferRetry.delay(for: $0, now: 1_700_000_000) }
    }
    #expect(delay(503, "120") == 120 && delay(429, "7") == 7)
    #expect(delay(503, "0") == 1 && delay(503, "999999") == 3600)
    #expect(delay(503, "Tue, 14 Nov 2023 22:14:20 GMT") == 60)
    #expect(delay(503, nil) == nil && delay(503, "soon") == nil && delay(500, "120") == nil && delay(200, "120") == nil)
  }

  @Test func errorsThatMayPass() {
    let codes: [URLError.Code] = [
      .timedOut, .cannotFindHost, .cannotConnectToHost, .networkConnectionLost, .notConnectedToInternet,
    ]
    #expect(codes.allSatisfy { TransferRetry.mayHelp(after: URLError($0)) })
    let others: [URLError.Code] = [
      .cancelled, .badURL, .unsupportedURL, .httpTooManyRedirects, .serverCertificateUntrusted, .cannotWriteToFile,
      .fileDoesNotExist, .badServerResponse,
    ]
    #expect(others.allSatisfy { !TransferRetry.mayHelp(after: URLError($0)) })
  }
}
