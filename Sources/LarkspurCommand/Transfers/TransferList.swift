import LarkspurConsole
import LarkspurHTTP
import LarkspurTransfers

/// The text of `larkspur transfers list`.
struct TransferList {
  struct Session {
    var session: TransferSession
    var records: [TransferRecord]
    var unreadable: [Int] = []
    /// Whether the service carries the session out, and whether its program is attached.
    var isServed = false
    var isAttached = false
  }

  var sessions: [Session]

  var text: String {
    guard !sessions.isEmpty else { return "no background sessions\n" }
    return sessions.map(Self.text).joined(separator: "\n")
  }

  private static func text(_ session: Session) -> String {
    let state = session.isAttached ? "program attached" : session.isServed ? "carried out by the service" : "at rest"
    var text = Format.visible(session.session.identifier.utf8) + "  (\(state))\n"
    text += "  " + Format.visible(session.session.directory.utf8) + "\n"
    var table = Table(columns: [.right, .left, .right, .left])
    for record in session.records {
      table.append(["  \(record.task)", word(record), progress(record), Format.visible(shown(record).utf8)])
    }
    text += table.text
    if session.records.isEmpty { text += "  no tasks\n" }
    for task in session.unreadable { text += "  \(task)  cannot be read\n" }
    return text
  }

  private static func word(_ record: TransferRecord) -> String {
    switch record.state {
    case .running: record.nextAttemptSeconds == nil && record.earliestBeginSeconds == nil ? "running" : "waiting"
    case .suspended: "paused"
    case .canceling: "cancelling"
    case .completed: record.failure.map { "failed (\($0.code))" } ?? "complete"
    }
  }

  private static func progress(_ record: TransferRecord) -> String {
    let (done, total) =
      record.kind == .upload
      ? (record.counts.sent, record.counts.expectedToSend)
      : (max(record.counts.received, Int64(record.resumePoint?.offset ?? 0)), record.counts.expectedToReceive)
    let text = Format.bytes(Double(max(done, 0)))
    return total > 0 ? "\(text) of \(Format.bytes(Double(total)))" : text
  }

  /// The URL without the parts that may be secrets: user, password, query and fragment.
  private static func shown(_ record: TransferRecord) -> String {
    let url = RequestURL.redacted((record.currentRequest ?? record.originalRequest).url)
    return String(url.prefix { $0 != "?" && $0 != "#" })
  }
}
