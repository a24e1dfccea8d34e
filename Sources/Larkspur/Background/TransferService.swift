import LarkspurTransfers

/// What the transfer service needs of the library.
package enum TransferService {
  /// Makes the executor of a session, which carries its tasks out.
  ///
  /// - Parameter log: Gets lines for people. They quote no fields of requests.
  package static func executor(
    of session: TransferSession, log: @escaping @Sendable (String) -> Void
  ) throws(TransferLinkError) -> any TransferLink {
    try TransferExecutor(session, log: log)
  }
}
