// Writes and removes records of background transfers, until the process is killed.
//
//   TestHelper journal-writer FOLDER SESSION COUNT     for each number n from 0: writes n to the record of task
//                                                      1 + n % 4, writes the record of task 100 + n, removes that of
//                                                      task 99 + n, and prints n once all that is on the disk

import Foundation
import LarkspurTransfers

func runJournalWriter(_ arguments: [String]) throws {
  guard arguments.count == 3, let count = Int(arguments[2]) else { throw Failure.wrongArguments }
  let (path, session) = (arguments[0], arguments[1])
  var opened: TransferJournal?
  while opened == nil {
    do {
      opened = try TransferJournal(path: path, session: session) { _ in }
    } catch TransferJournalError.inUse {
      // Another process may hold a copy of the last owner's lock for a moment.
    }
  }
  guard let journal = opened else { return }
  _ = try journal.content()
  for number in 0..<count {
    var record = TransferRecord(
      task: 1 + number % 4, session: session, kind: .download,
      request: TransferRequest(url: "https://example.com/\(number)"), createdSeconds: 0)
    record.failedAttempts = UInt32(number)
    // Records of different sizes.
    record.taskDescription = String(repeating: "x", count: number * 7919 % 20_000)
    try journal.write(record)
    record.task = 100 + number
    try journal.write(record)
    if number > 0 { try journal.remove(task: 99 + number) }
    say("\(number)")
  }
}
