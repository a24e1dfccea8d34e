/// Why a command could not do its work: the status to exit with, and what to tell the user. No words: the
/// user knows already.
package struct CommandFailure: Error, Hashable, Sendable {
  package var status: ExitStatus
  package var words: String?

  package init(_ status: ExitStatus, _ words: String? = nil) {
    self.status = status
    self.words = words
  }
}
