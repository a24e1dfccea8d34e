import LarkspurTestServer

/// The transports with which a test runs: without TLS, with TLS 1.2 and with TLS 1.3.
enum Transport: CaseIterable {
  case plain, tls12, tls13

  func start() throws -> TestServer {
    if self == .plain { return try TestServer() }
    var tls = TestServer.TLS(certificate: try TestCA().issue())
    tls.versions = self == .tls12 ? .tls1_2 ... .tls1_2 : .tls1_3 ... .tls1_3
    return try TestServer(tls: tls)
  }

  func client(_ server: TestServer) throws -> RawClient {
    try RawClient(server, tls: self == .plain ? nil : try ClientTLS())
  }
}
