import LarkspurTestServer
import TestKit
import Testing

/// A process that ends while its sessions are at work.
@Suite(.ownThread) struct ExitProcessTests {
  /// OpenSSL is not taken from under those who use it: neither from a program's last words, nor from a loop's thread.
  @Test(.timeLimit(.minutes(1))) func secureLoadsGoOnToTheVeryEnd() throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    #expect(try SiblingProcess("SessionProbe", ["afterwards", server.url("/get")]).numbers() == [200, 200])
  }
}
