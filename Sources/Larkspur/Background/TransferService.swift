import LarkspurTransfers

/// The transfer service's part that belongs to this module: the executors of sessions whose settings have travelled.
package enum TransferService {
  /// Returns the settings of a session's configuration as bytes, for `TransferSession`.
  ///
  /// - Parameter log: Gets a line for each part of the configuration that cannot travel.
  /// - Throws: `unavailable` if the settings are too large.
  package static func settings(
    of configuration: URLSessionConfiguration, log: (String) -> Void
  ) throws(TransferLinkError) -> [UInt8] {
    do throws(TransferValueError) {
      let encoded = try SessionSettings.encoded(configuration)
      let name = configuration.identifier ?? ""
      for part in encoded.leftBehind {
        log("the transfer service carries out background session \"\(name)\" without \(part)")
      }
      return encoded.bytes
    } catch {
      throw .unavailable(reason: "the settings of the session: \(error)")
    }
  }

  /// Makes the executor of a session from its settings.
  ///
  /// - Parameter log: Gets lines for people. They quote no fields of requests.
  /// - Throws: `unavailable` if the settings cannot be read, and the errors of the executor.
  package static func executor(
    of session: TransferSession, log: @escaping @Sendable (String) -> Void
  ) throws(TransferLinkError) -> any TransferLink {
    let configuration: URLSessionConfiguration
    do throws(TransferValueError) {
      configuration = try SessionSettings.configuration(from: session.settings, identifier: session.identifier)
    } catch {
      throw .unavailable(reason: "the settings of the session: \(error)")
    }
    return try TransferExecutor(session, configuration, log: log)
  }
}
