import LarkspurTestServer
import TestKit
import Testing

/// Tests a process that exits while its sessions are loading.
@Suite(.ownThread) struct ExitProcessTests {
  /// OpenSSL stays usable during exit, both for loads from `atexit` handlers and on the loops' threads.
  @Test(.timeLimit(.minutes(1))) func secureLoadsGoOnToTheVeryEnd() throws {
    let server = try TestServer(tls: TestServer.TLS(certificate: try TestCA().issue()))
    #expect(try SiblingProcess("session", ["afterwards", server.url("/get")]).numbers() == [200, 200])
  }
}
