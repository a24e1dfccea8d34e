import Foundation
import LarkspurTestServer

/// `openssl s_server`, which serves the files of its directory over HTTP/1.0.
final class OpenSSLServer: TLSServer {
  static let program = "/usr/bin/openssl"

  let tcpPort: UInt16
  private let files: TLSFiles
  private let process: ServerProcess

  /// - Parameter port: The port to listen on, or `nil` for a port that the kernel chooses and s_server prints.
  init(_ plan: TLSPlan, port: UInt16? = nil) throws {
    try requireProgram(Self.program, package: "openssl")
    files = try TLSFiles(plan)
    process = try ServerProcess(
      Self.program, Self.arguments(plan, files, port ?? 0), in: files.directory.path, readyText: "ACCEPT")
    let text = "ACCEPT 127.0.0.1:"
    let greeting = process.greeting
    let said = greeting.firstRange(of: text).map { greeting[$0.upperBound...] } ?? ""
    guard let port = port ?? UInt16(said.prefix { $0.isNumber }) else {
      process.end()
      throw RealServer.Unavailable(description: "s_server names no port: \(greeting)")
    }
    tcpPort = port
  }

  deinit {
    process.end()
  }

  private static func arguments(_ plan: TLSPlan, _ files: TLSFiles, _ port: UInt16) -> [String] {
    var list = ["s_server", "-accept", "127.0.0.1:\(port)", "-WWW"]
    list += ["-min_protocol", name(plan.versions.lowerBound), "-max_protocol", name(plan.versions.upperBound)]
    let ciphers = [plan.ciphers ?? (plan.isWeak ? "ALL" : nil), plan.isWeak ? "@SECLEVEL=0" : nil]
    if let ciphers = ciphers.compactMap(\.self).joinedUnlessEmpty { list += ["-cipher", ciphers] }
    list += ["-cert", files.path("leaf.pem"), "-key", files.path("key.pem")]
    if plan.chain.count > 1 { list += ["-cert_chain", files.path("rest.pem")] }
    if plan.dhParameters != nil { list += ["-dhparam", files.path("dh.pem")] }
    if plan.staple != nil { list += ["-status_file", files.path("staple.der")] }
    switch plan.clients {
    case .anonymous: break
    case .asked: list += ["-verify", "1", "-CAfile", files.path("clients.pem"), "-verify_return_error"]
    case .required: list += ["-Verify", "1", "-CAfile", files.path("clients.pem"), "-verify_return_error"]
    }
    return list + plan.opensslArguments
  }

  private static func name(_ version: TLSPlan.Version) -> String {
    switch version {
    case .tls1_0: "TLSv1"
    case .tls1_1: "TLSv1.1"
    case .tls1_2: "TLSv1.2"
    case .tls1_3: "TLSv1.3"
    }
  }
}

extension [String] {
  var joinedUnlessEmpty: String? { isEmpty ? nil : joined(separator: ":") }
}
