import Foundation
import LarkspurIO
import LarkspurTransport
import Testing

@testable import Larkspur

/// What is beneath an error: what the kernel said, and else the network library's own, as on Darwin.
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

  @Test func nobodys() { #expect(underlying(.cancelled) == nil) }
}
