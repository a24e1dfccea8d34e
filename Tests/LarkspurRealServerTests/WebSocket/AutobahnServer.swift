import Foundation
import LarkspurTestServer
import Testing

/// Autobahn's fuzzing server, which reports how a WebSocket client behaves in each of its cases.
final class AutobahnServer {
  /// The server's URL, without a path.
  let url: String
  private let files: RealProxy.Files
  private let server: PythonServer

  /// Installed once for the package, by the first test that needs it.
  private static let python: Result<String, any Error> = Result { try install() }

  /// Installs the suite.
  ///
  /// - Returns: The path of its interpreter.
  private static func install() throws -> String {
    try ServerProcess.run(PythonServer.package.appending(path: "Tests/Autobahn/install").path, [])
    return PythonServer.package.appending(path: ".build/autobahn/python/bin/python").path
  }

  /// The path of the interpreter. Cancels the test with a message if there is no Python 2.7, on which the suite runs.
  /// Throws if the suite cannot be installed for another reason.
  private static func interpreter() throws -> String {
    do {
      return try python.get()
    } catch let error as RealServer.Unavailable where error.description.contains("there is no Python 2.7") {
      FileHandle.standardError.write(Data("skipped: there is no Python 2.7 for Autobahn's test suite\n".utf8))
      try Test.cancel("there is no Python 2.7 for Autobahn's test suite")
    }
  }

  /// Starts the server, or cancels the test if there is no Python 2.7.
  ///
  /// - Parameters:
  ///   - cases: Patterns of cases, such as `1.*`.
  ///   - certificate: The server's certificate for TLS, or `nil` for a server without TLS.
  init(cases: [String], certificate: TestCertificate? = nil) throws {
    files = try RealProxy.Files()
    var arguments = [files.path("reports"), cases.joined(separator: ",")]
    if let certificate {
      try files.write("certificate.pem", certificate.certificatePEM)
      try files.write("key.pem", certificate.privateKeyPEM)
      arguments += [files.path("certificate.pem"), files.path("key.pem")]
    }
    server = try PythonServer("Tests/Autobahn/server.py", arguments, python: Self.interpreter())
    url = "\(certificate == nil ? "ws" : "wss")://localhost:\(server.port)"
  }

  /// The path of the index of the reports.
  var index: String { files.path("reports/index.json") }

  /// Writes a file for the client.
  ///
  /// - Returns: Its path.
  func write(_ name: String, _ text: String) throws -> String {
    try files.write(name, text)
    return files.path(name)
  }
}
