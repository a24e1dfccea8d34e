import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers

/// An executor of one process: carries commands out over a real journal on a scripted disk, and loads resources from a
/// simulated server piece by piece.
///
/// The order of its steps is that of `TransferExecutor`: received bytes are synced before a record counts them, and the
/// record forgets a version before its file gets bytes of another one.
struct SimulatedExecutor {
  private struct Load {
    let file: any TransferFile
    let validator: String
    var offset: Int
  }

  private let disk: ScriptedDisk
  private let journal: TransferJournal
  private var loads: [Int: Load] = [:]
  /// The tasks whose records the journal has not taken.
  private var unwritten: Set<Int> = []
  private(set) var records: [Int: TransferRecord] = [:]
  /// The tasks whose records have changed since the program saw them.
  private(set) var changes: [Int] = []

  init(_ disk: ScriptedDisk, _ ledger: inout TransferLedger) throws {
    self.disk = disk
    journal = try TransferJournal(files: disk, session: TransferScenario.session) { _ in }
    let content = try journal.content()
    for problem in content.problems {
      // A call that fails is repeated by the next process.
      if case .unreadable(let error) = problem.reason { throw error }
      ledger.complain("task \(problem.task): \(problem.reason)")
    }
    for record in content.records {
      if record.state == .completed, record.events.isEmpty {
        try? journal.remove(task: record.task)
      } else {
        records[record.task] = record
      }
    }
  }

  var runningTasks: [Int] { records.values.filter { $0.state == .running }.map(\.task).sorted() }

  mutating func takeChange() -> TransferRecord? {
    while !changes.isEmpty { if let record = records[changes.removeFirst()] { return record } }
    return nil
  }

  // MARK: - Commands

  mutating func carryOut(_ command: TransferCommand, _ ledger: inout TransferLedger) {
    switch command {
    case .create(let record):
      guard records[record.task] == nil else { return }
      records[record.task] = record
      if !write(record.task, &ledger) { end(record.task, isGood: false, &ledger) }
    case .resume(let task): set(.running, of: task, from: .suspended, &ledger)
    case .suspend(let task): set(.suspended, of: task, from: .running, &ledger)
    case .cancel(let task, _):
      guard records[task].map({ $0.state != .completed }) ?? false else { return }
      records[task]?.resumePoint = nil
      end(task, isGood: false, &ledger)
    case .acknowledge(let task, let count): acknowledge(task, count, &ledger)
    case .update, .answer: break
    }
  }

  private mutating func set(
    _ state: TransferRecord.State, of task: Int, from other: TransferRecord.State, _ ledger: inout TransferLedger
  ) {
    guard records[task]?.state == other else { return }
    records[task]?.state = state
    loads[task] = nil
    write(task, &ledger)
  }

  private mutating func acknowledge(_ task: Int, _ count: Int, _ ledger: inout TransferLedger) {
    guard var record = records[task] else { return }
    let taken = record.events.prefix(count)
    record.events.removeFirst(taken.count)
    records[task] = record
    if record.state == .completed, record.events.isEmpty {
      records[task] = nil
      do { try journal.remove(task: task) } catch { return }
    } else {
      guard write(task, &ledger) else { return }
    }
    ledger.acknowledged(task, taken)
  }

  /// - Returns: Whether the record is on the disk.
  @discardableResult
  private mutating func write(_ task: Int, _ ledger: inout TransferLedger) -> Bool {
    guard let record = records[task] else { return false }
    do {
      try journal.write(record)
    } catch {
      unwritten.insert(task)
      return false
    }
    unwritten.remove(task)
    ledger.written(record)
    return true
  }

  // MARK: - Loads

  /// Does one step of a task that runs: opens its file, receives a piece, writes a record, or ends.
  mutating func step(
    _ task: Int, _ server: SimulatedResources, _ draw: inout SeededRandom, _ ledger: inout TransferLedger
  ) {
    let resource = server.resource(of: task)
    guard var load = loads[task] else { return open(task, resource, &ledger) }
    // The connection is lost: the next attempt may find another version.
    if draw.chance(1, of: 12) { return loads[task] = nil }
    guard load.validator == resource.validator else { return loads[task] = nil }
    if load.offset < resource.bytes.count {
      let piece = resource.bytes[load.offset...].prefix(draw.number(1...10))
      ledger.fetched(task, load.validator, from: load.offset, count: piece.count)
      do { try load.file.append(Array(piece)) } catch { return loads[task] = nil }
      load.offset += piece.count
      loads[task] = load
      if draw.chance(1, of: 3) { checkpoint(task, load, &ledger) }
    } else {
      loads[task] = nil
      records[task]?.resumePoint = nil
      records[task]?.hasContentFile = true
      end(task, isGood: (try? journal.syncContent(of: task)) != nil, &ledger)
    }
  }

  private mutating func open(
    _ task: Int, _ resource: SimulatedResources.Resource, _ ledger: inout TransferLedger
  ) {
    guard let record = records[task] else { return }
    let name = TransferFileName.content(of: task)
    var start = record.resumePoint.flatMap { $0.validator == resource.validator ? $0.offset : nil } ?? 0
    if start > 0 {
      let count = disk.bytes(name)?.count ?? 0
      if count < start {
        ledger.complain("task \(task) has \(count) bytes, and its record counts \(start)")
        start = 0
      }
    }
    if start == 0, record.resumePoint != nil || unwritten.contains(task) {
      records[task]?.resumePoint = nil
      // Until the record has forgotten the version, the file keeps its bytes.
      guard write(task, &ledger) else { return }
    }
    guard let file = try? disk.open(name, cutTo: start) else { return }
    records[task]?.hasContentFile = true
    loads[task] = Load(file: file, validator: resource.validator, offset: start)
  }

  private mutating func checkpoint(_ task: Int, _ load: Load, _ ledger: inout TransferLedger) {
    guard (try? journal.syncContent(of: task)) != nil else { return }
    records[task]?.resumePoint = ResumePoint(validator: load.validator, offset: load.offset, total: nil, coding: nil)
    write(task, &ledger)
  }

  private mutating func end(_ task: Int, isGood: Bool, _ ledger: inout TransferLedger) {
    loads[task] = nil
    records[task]?.state = .completed
    records[task]?.failure = isGood ? nil : TransferRecord.Failure(domain: "a", code: -1, message: "")
    records[task]?.events += isGood ? [.downloaded, .completed] : [.completed]
    write(task, &ledger)
    changes.append(task)
  }
}

/// The resources of a server, one for each task. A resource may get another version at any time.
struct SimulatedResources {
  struct Resource {
    var validator: String
    var bytes: [UInt8]
  }

  private var versions: [Int: Int] = [:]

  func resource(of task: Int) -> Resource { resource(of: task, version: versions[task] ?? 0) }

  private func resource(of task: Int, version: Int) -> Resource {
    // No byte is zero, as those of a page that was lost are.
    let bytes = (0..<(7 * (task + version)) % 40).map { UInt8(1 + (31 * task + 17 * version + 3 * $0) % 255) }
    return Resource(validator: "\"\(version)\"", bytes: bytes)
  }

  mutating func change(_ task: Int) { versions[task, default: 0] += 1 }

  /// Whether the bytes are those of one version.
  func isWhole(_ bytes: [UInt8], of task: Int) -> Bool {
    (0...(versions[task] ?? 0)).contains { resource(of: task, version: $0).bytes == bytes }
  }
}
