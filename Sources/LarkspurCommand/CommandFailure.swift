import LarkspurConsole

/// The failure of a command: the status to exit with, and the message to the user. Without a message the user already
/// knows the cause.
package struct CommandFailure: Error, Hashable, Sendable {
  package var status: ExitStatus
  package var message: String?

  package init(_ status: ExitStatus, _ message: String? = nil) {
    self.status = status
    self.message = message
  }

  /// Writes the message to standard error.
  ///
  /// - Returns: The status to exit with.
  func report() -> ExitStatus {
    if let message { Console.complain(message) }
    return status
  }
}
