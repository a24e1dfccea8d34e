import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// Makes the TLS settings of a connection from the options, and reads the files that they name.
enum TLSSetUp {
  static func security(_ options: TLSOptions, for url: RequestURL) throws(CommandFailure) -> Security? {
    guard url.isSecure else { return nil }
    if options.isInsecure {
      Console.complain("warning: --insecure: the server's certificate is not verified; anybody could be answering")
    }
    if options.logsKeys { Console.complain("warning: --dangerously-log-keys: \(keyLogWarning)") }
    var configuration = try configuration(options)
    if !options.pins.isEmpty {
      guard let host = PinPolicy.Host(url.host, pins: Set(options.pins)) else {
        throw CommandFailure(.malformedURL, "\(url.host.debugDescription) is no name that could have pins")
      }
      configuration.pins = PinPolicy([host])
    }
    return try security(configuration)
  }

  /// Makes the TLS settings for a proxy that speaks TLS. All options for servers apply to it, as in a session, except
  /// pins, which belong to one server.
  static func security(_ options: TLSOptions, forProxy proxy: Proxy) throws(CommandFailure) -> Security? {
    guard proxy.kind == .https else { return nil }
    return try security(try configuration(options))
  }

  private static func security(_ configuration: TLSConfiguration) throws(CommandFailure) -> Security {
    do throws(TLSError) {
      return Security(try TLSContext(configuration))
    } catch {
      throw CommandFailure(ExitStatus(error), "cannot set up TLS: \(error)")
    }
  }

  private static func configuration(_ options: TLSOptions) throws(CommandFailure) -> TLSConfiguration {
    var configuration = TLSConfiguration()
    configuration.minimumVersion = options.minimumVersion
    configuration.maximumVersion = options.maximumVersion
    configuration.dangerouslyAllowsAnyCertificate = options.isInsecure
    configuration.dangerouslyAllowsLegacyKeyExchange = options.allowsLegacyKeyExchange
    configuration.dangerouslyLogsKeys = options.logsKeys
    if let path = options.roots { configuration.roots = .only(try roots(path)) }
    configuration.identity = try identity(options)
    return configuration
  }

  private static var keyLogWarning: String {
    guard let path = EnvironmentVariable.value(of: "SSLKEYLOGFILE"), !path.isEmpty else {
      return "SSLKEYLOGFILE names no file; nothing is logged"
    }
    return "whoever can read \(path) can read what is sent and received"
  }

  private static func roots(_ path: String) throws(CommandFailure) -> [Certificate] {
    guard let roots = Certificate.read(try read(path, .rootsUnreadable)) else {
      throw CommandFailure(.rootsUnreadable, "\(path) holds no certificate that could be read")
    }
    return roots
  }

  private static func identity(_ options: TLSOptions) throws(CommandFailure) -> ClientIdentity? {
    guard let path = options.certificate else { return nil }
    let bytes = try read(path, .clientCertificateProblem)
    // An archive contains its key. A file with a separate key is a certificate, in PEM or DER.
    let isArchive = options.key == nil && !String(decoding: bytes, as: UTF8.self).contains("-----BEGIN ")
    var key = bytes
    if let path = options.key { key = try read(path, .clientCertificateProblem) }
    do throws(TLSError) {
      return isArchive
        ? try ClientIdentity(pkcs12: bytes, password: options.password ?? "")
        : try ClientIdentity(certificates: bytes, key: key, password: options.password)
    } catch {
      throw CommandFailure(.clientCertificateProblem, "\(path): \(error)")
    }
  }

  private static func read(_ path: String, _ status: ExitStatus) throws(CommandFailure) -> [UInt8] {
    do throws(Errno) {
      return try OpenFile(reading: path).readToEnd()
    } catch {
      throw CommandFailure(status, "could not read \(path): \(error)")
    }
  }
}
