import LarkspurTransfers

/// The link of a session that has no executor yet. Tasks that are begun meanwhile are sent to the executor that comes.
final class AbsentLink: TransferLink {
  private let directory: String

  init(directory: String) { self.directory = directory }

  let records: [TransferRecord] = []

  func send(_ command: TransferCommand) {}
  func start(_ notify: @escaping @Sendable (TransferNotice) -> Void) {}
  func flush(_ completion: @escaping @Sendable (Bool) -> Void) { completion(false) }
  func close(_ completion: @escaping @Sendable () -> Void) { completion() }
  func contentPath(of task: Int) -> String { "\(directory)/\(TransferFileName.content(of: task))" }
}
