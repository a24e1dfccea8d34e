import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The download's thread, which opens, syncs, hashes and renames its files.
extension DownloadRun {
  enum Job: Sendable {
    case discard
    case reserve(Int)
    case checkpoint(DownloadRecord)
    case verify(total: Int)
    case install(total: Int)
    case close(DownloadFailure?)
  }

  func startThread() throws(DownloadError) {
    do throws(Errno) {
      try SystemThread(name: "download") { [self] in
        guard let store = open() else { return }
        while perform(nextJob(), store) {}
      }.detach()
    } catch {
      throw DownloadError(error, plan)
    }
  }

  /// Waits for the next job. All but a checkpoint wait until the lanes that were cancelled have written their last bytes: no
  /// byte of an old lane may come after them.
  private func nextJob() -> Job {
    while true {
      let job = table.withLock { table -> Job? in
        guard let first = table.jobs.first else { return nil }
        if case .checkpoint = first {} else if !table.stray.isEmpty { return nil }
        return table.jobs.removeFirst()
      }
      if let job { return job }
      _ = jobsReady.take()
    }
  }

  /// Opens the files, and starts the machine.
  ///
  /// - Returns: `nil` if the download is over.
  private func open() -> DownloadStore? {
    let store: DownloadStore
    do throws(DownloadStore.Failure) {
      store = try DownloadStore(
        path: plan.destination, urls: plan.urls, DownloadHashes(checksum: plan.checksum, pieces: plan.pieceHashes),
        bytesToLeave: plan.bytesToLeave)
    } catch {
      finish(.failure(DownloadError(error, plan)))
      return nil
    }
    if let size = store.completeCount {
      finish(.success(Download.File(path: plan.destination, size: size, received: 0)))
      return nil
    }
    let machine = DownloadMachine(
      plan.rules(connectionsMax: client.downloadLanesMax), urls: plan.urls, record: store.record, inode: store.inode
    ) { .random(in: 0...1) }
    table.withLock { table in
      table.store = store
      table.core = Core(machine)
    }
    step { table, machine, now in
      var actions = machine.start(now: now)
      if table.isPaused { actions += machine.pause(now: now) }
      if table.isCancelled { actions += machine.cancel(now: now) }
      return ((), actions)
    }
    return store
  }

  /// - Returns: Whether further jobs may come.
  private func perform(_ job: Job, _ store: DownloadStore) -> Bool {
    switch job {
    case .discard:
      let error = failure { () throws(Errno) in try store.discard() }
      report { $0.discarded(error, now: $1) }
    case .reserve(let count):
      let error = failure { () throws(Errno) in try store.reserve(count) }
      report { $0.reserved(error, now: $1) }
    case .checkpoint(let record):
      let error = failure { () throws(Errno) in try store.checkpoint(record) }
      report { $0.checkpointed(error, now: $1) }
    case .verify(let total):
      let verification = store.verify(total: total)
      report { $0.verified(verification, now: $1) }
    case .install(let total):
      let error = failure { () throws(Errno) in try store.install(total: total) }
      report { $0.installed(error, now: $1) }
    case .close(let failure):
      store.close()
      finish(outcome(failure))
      return false
    }
    return true
  }

  private func failure(_ call: () throws(Errno) -> Void) -> DownloadMachine.DiskError? {
    do throws(Errno) {
      try call()
      return nil
    } catch {
      return DownloadMachine.DiskError(error)
    }
  }

  private func outcome(_ failure: DownloadFailure?) -> DownloadFeed.Outcome {
    table.withLock { table in
      if let failure { return .failure(DownloadError(failure, plan, url: table.failure.url, table.failure.error)) }
      return .success(
        Download.File(path: plan.destination, size: table.core?.machine.total ?? 0, received: table.received))
    }
  }

  /// Makes the result known. The last step of a download.
  func finish(_ outcome: DownloadFeed.Outcome) {
    table.withLock { table in
      var last = shown(of: table)
      last.phase = .complete
      if case .success(let file) = outcome {
        last.total = file.size
        last.received = file.size
        last.kept = file.size
        last.pieces = file.size > 0 ? [0..<file.size] : []
        feed.changed(prefixEnd: file.size)
      } else {
        last.phase = .failed
      }
      table.last = last
      table.core = nil
      table.store = nil
    }
    feed.finish(outcome)
  }
}
