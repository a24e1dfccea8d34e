import LarkspurIO

/// Reads a session's tasks while another process owns the journal. Nothing is changed, and no lock is taken: records are
/// replaced as a whole, so that each one is true at some moment.
public enum TransferJournalReader {
  public struct Content: Sendable {
    /// The records in the order of their tasks.
    public var records: [TransferRecord] = []
    /// The tasks whose records cannot be read.
    public var unreadable: [Int] = []
  }

  /// - Parameter known: Tasks whose records are not read.
  /// - Throws: `unavailable`, and `full` if there are more records than any journal has.
  public static func content(
    of session: TransferSession, without known: Set<Int> = []
  ) throws(TransferJournalError) -> Content {
    var content = Content()
    do throws(Errno) {
      let directory = try Directory(path: session.directory, isCreating: false)
      let names = try directory.list().compactMap { TransferFileName($0.name) }.filter { $0.kind == .record }
      guard names.count <= TransferJournal.tasksMax else { throw .fileTooLarge }
      var byteCount = 0
      for name in names.sorted(by: { $0.task < $1.task }) where !known.contains(name.task) {
        do throws(Errno) {
          let bytes = try directory.read(name.text, atMost: TransferRecord.bytesMax + 1)
          byteCount += bytes.count
          if let record = try? TransferRecord(bytes, of: name.task, session.identifier) {
            content.records.append(record)
          } else {
            content.unreadable.append(name.task)
          }
        } catch .noSuchFile {
          // The task has ended since the directory was listed.
        } catch {
          content.unreadable.append(name.task)
        }
        guard byteCount <= 2 * TransferJournal.bytesMax else { throw .fileTooLarge }
      }
    } catch .fileTooLarge {
      throw .full
    } catch {
      throw .unavailable(error)
    }
    return content
  }
}
