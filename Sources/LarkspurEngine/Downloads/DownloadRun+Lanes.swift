import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The requests of a download.
extension DownloadRun {
  /// Runs a lane: waits for its turn at the host, sends the request, and writes its body.
  func load(_ lane: Int, _ request: DownloadMachine.Request) async {
    let url = plan.urls[request.source]
    await DownloadHostGate.shared.run(at: DownloadHostGate.host(of: url)) {
      var digest: DownloadDigest?
      do {
        try await client.fetch(url, plan.fields + request.fields + [Self.uncoded]) { status, fields in
          digest = DownloadDigest(contentDigest: fields.values(named: "Content-Digest"))
          return take(lane, url, status, fields)
        } piece: { piece in
          digest?.update(piece.span)
          return await take(lane, piece)
        }
        end(lane, digest?.isMatched() == false ? .badDigest : .complete)
      } catch {
        end(lane, .failed(isOfConnection: client.isOfConnection(error)), (url, error))
      }
    }
  }

  /// The file gets the bytes as they are sent, so it asks for bytes without a coding.
  private static let uncoded = Field("Accept-Encoding", "identity")

  private func end(_ lane: Int, _ end: DownloadMachine.LaneEnd, _ failure: (String, any Error)? = nil) {
    step { table, machine, now -> (Void, [DownloadMachine.Action])? in
      guard table.lanes.removeValue(forKey: lane) != nil else { return nil }
      if let failure { table.failure = failure }
      return ((), machine.ended(lane, end, now: now))
    }
  }

  /// - Returns: Whether the body is wanted.
  private func take(_ lane: Int, _ url: String, _ status: Int, _ fields: FieldList) -> Bool {
    let head = DownloadMachine.Head(status: status, fields: fields, wallSeconds: MachineClock.wallSeconds)
    step { table, machine, now -> (Void, [DownloadMachine.Action])? in
      guard table.lanes[lane] != nil else { return nil }
      if status >= 400 { table.failure = (url, nil) }
      return ((), machine.head(lane, head, now: now))
    }
    // A field says so if the response has other bytes than the plan or an earlier mirror.
    guard isWanted(lane), let store else { return false }
    guard store.note(reprDigest: fields.values(named: "Repr-Digest")) else {
      end(lane, .badDigest)
      return false
    }
    return true
  }

  private func isWanted(_ lane: Int) -> Bool { table.withLock { $0.lanes[lane] != nil } }

  private enum Next {
    case write(DownloadStore, skip: Int, at: Int, count: Int)
    case wait(OneShot<Void>)
    case none
  }

  /// Writes a piece at the offsets that the machine names.
  ///
  /// - Returns: Whether more of the body is wanted.
  private func take(_ lane: Int, _ piece: [UInt8]) async -> Bool {
    var position = 0
    while position < piece.count {
      switch next(lane, piece.count - position) {
      case .write(let store, let skip, let offset, let count):
        let range = position + skip..<position + skip + count
        position = range.upperBound
        if count > 0, !write(lane, piece.span.extracting(range), at: offset, store) { return false }
      case .wait(let gate): if await gate.get() == nil { return false }
      case .none: return false
      }
    }
    return isWanted(lane)
  }

  private func next(_ lane: Int, _ count: Int) -> Next {
    step { table, machine, now in
      guard table.lanes[lane] != nil, let store = table.store else { return nil }
      let (space, actions) = machine.space(lane, count, now: now)
      switch space {
      case .write(let skip, let offset, let count):
        table.lanes[lane]?.isWriting = count > 0
        return (.write(store, skip: skip, at: offset, count: count), actions)
      case .wait:
        let gate = OneShot<Void>()
        table.lanes[lane]?.gate = gate
        return (.wait(gate), actions)
      case .none: return (.none, actions)
      }
    } ?? .none
  }

  /// - Returns: Whether the bytes have been written.
  private func write(_ lane: Int, _ bytes: Span<UInt8>, at offset: Int, _ store: DownloadStore) -> Bool {
    var failure: DownloadMachine.DiskError?
    do throws(Errno) {
      try store.write(bytes, at: offset)
    } catch {
      failure = DownloadMachine.DiskError(error)
    }
    let range = offset..<offset + bytes.count
    step { table, machine, now -> (Void, [DownloadMachine.Action])? in
      table.received += range.count
      // A lane that was cancelled meanwhile may have held a job of the thread back.
      if table.stray.remove(lane) != nil { jobsReady.put() }
      guard table.lanes[lane] != nil else { return nil }
      table.lanes[lane]?.isWriting = false
      return ((), failure.map { machine.writeFailed(lane, $0, now: now) } ?? machine.wrote(lane, range, now: now))
    }
    return failure == nil
  }
}
