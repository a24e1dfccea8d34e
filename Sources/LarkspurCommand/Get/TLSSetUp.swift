import Larkspur
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// The parts of TLS that a session's public settings do not have.
enum TLSSetUp {
  /// Makes the TLS settings of a connection without a session. Reads the files that the options name, and warns of
  /// options that remove protection.
  ///
  /// - Returns: `nil` if the URL needs no TLS.
  static func security(_ options: TLSOptions, for url: RequestURL) throws(CommandFailure) -> Security? {
    guard url.isSecure else { return nil }
    var trust = try SessionSetUp.trust(options, url)
    warnOfKeyLog(options)
    trust.dangerouslyLogsKeys = options.logsKeys
    var configuration = TLSConfiguration()
    configuration.minimumVersion = options.minimumVersion
    configuration.maximumVersion = options.maximumVersion
    trust.apply(to: &configuration)
    do throws(TLSError) {
      return Security(try TLSContext(configuration))
    } catch {
      throw CommandFailure(ExitStatus(error), "cannot set up TLS: \(error)")
    }
  }

  /// Warns of `--dangerously-log-keys`, if the option is given.
  static func warnOfKeyLog(_ options: TLSOptions) {
    guard options.logsKeys else { return }
    let path = EnvironmentVariable.value(of: "SSLKEYLOGFILE") ?? ""
    let warning =
      path.isEmpty
      ? "SSLKEYLOGFILE names no file; nothing is logged" : "whoever can read \(path) can read what is sent and received"
    Console.complain("warning: --dangerously-log-keys: \(warning)")
  }
}
