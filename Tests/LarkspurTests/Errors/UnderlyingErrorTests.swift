import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport
import Testing

@testable import Larkspur

/// Tests the underlying error of a `URLError`: the kernel's error if there is one, otherwise an error of the CFNetwork
/// domain, as on Darwin.
@Suite struct UnderlyingErrorTests {
  private func underlying(_ error: TransportError) -> NSError? {
    URLError(error, url: nil).userInfo[NSUnderlyingErrorKey] as? NSError
  }

  @Test(
    arguments: [
      (.resolutionFailed(host: "a.example", reason: "no such host"), .cannotFindHost),
      (.timedOut(.awaitingHead), .timedOut),
      (.connectionClosed, .networkConnectionLost),
    ] as [(TransportError, URLError.Code)])
  func theNetworkLibrarys(error: TransportError, code: URLError.Code) {
    let underlying = underlying(error)
    #expect(underlying?.domain == "kCFErrorDomainCFNetwork" && underlying?.code == code.rawValue)
  }

  @Test func ofWhatNeverGotThere() {
    let underlying = URLError.make(.unsupportedURL, "unsupported URL").userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(
      underlying?.domain == "kCFErrorDomainCFNetwork" && underlying?.code == URLError.Code.unsupportedURL.rawValue)
    #expect(URLError.make(.cancelled).userInfo[NSUnderlyingErrorKey] == nil)
  }

  @Test func theKernels() {
    let underlying = underlying(.unavailable(.noBufferSpace))
    #expect(underlying?.domain == NSPOSIXErrorDomain && underlying?.code == Int(Errno.noBufferSpace.rawValue))
  }

  /// `transportError` distinguishes transport errors that map to one `URLError` code.
  @Test func theTransports() {
    let errors: [TransportError] = [
      .badResponse(.chunkSizeInvalid), .connectionLost(.receivingBody, .connectionReset), .tls(TLSError(.wrongHost)),
    ]
    for error in errors {
      #expect(URLError(error, url: nil).failing(at: URL(string: "http://a.example/")).transportError == error)
    }
    #expect(URLError.make(.badURL).transportError == nil && URLError(.cancelled).transportError == nil)
  }

  @Test func errorsWithoutUnderlyingError() { #expect(underlying(.cancelled) == nil) }
}
