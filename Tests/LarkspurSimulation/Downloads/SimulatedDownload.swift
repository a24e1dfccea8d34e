import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO

/// A program that downloads: a real `DownloadMachine` and a real `DownloadStore`, and the driver between them, whose threads
/// are events of the world.
final class SimulatedDownload {
  struct Plan {
    var mirrors: [Int]
    var rules: DownloadRules
    var hashes: DownloadHashes
  }

  private struct Lane {
    let mirror: Int
    var response = SimulatedMirror.Response()
    /// Number of bytes of the body that have arrived.
    var received = 0
    /// The bytes that wait for room.
    var piece: ArraySlice<UInt8> = []
    var digest: DownloadDigest?
  }

  let plan: Plan
  private let world: DownloadWorld
  private let disk: ScriptedDisk
  private let store: DownloadStore
  private var machine: DownloadMachine
  private(set) var watch: DownloadWatch
  private var lanes: [Int: Lane] = [:]
  /// The disk action that has not begun.
  private var job: DownloadMachine.Action?
  private var isJobRunning = false
  /// The lanes of the writes that are under way, some of which may have been cancelled.
  private var writing: [Int] = []
  private var timer: UInt64?
  private(set) var failure: DownloadFailure?
  /// Whether the machine has ended.
  private(set) var hasEnded = false
  /// Whether the program has ended.
  private(set) var isClosed = false
  /// Whether the world has checked the end.
  var isJudged = false
  private(set) var requests = 0

  /// Opens the files, and begins.
  init(_ world: DownloadWorld, _ plan: Plan) throws(DownloadStore.Failure) {
    (self.world, self.plan, disk) = (world, plan, world.disk)
    let urls = plan.mirrors.map { world.mirrors[$0].url }
    store = try world.interleaved { () throws(DownloadStore.Failure) in
      try DownloadStore(world.disk, DownloadWorld.name, urls: urls, plan.hashes, bytesToLeave: 0)
    }
    watch = DownloadWatch(store.record)
    if store.record == nil { world.ledger.discarded(part: store.inode) }
    machine = DownloadMachine(plan.rules, urls: urls, record: store.record, inode: store.inode) { world.fraction() }
    if store.completeCount != nil {
      hasEnded = true
    } else {
      perform(machine.start(now: world.seconds))
    }
    close()
  }

  /// Whether the process was killed, and does nothing any more.
  private var isDead: Bool { world.disk !== disk || disk.isDead }

  /// Whether bytes that were written have to be in the record, but for a piece of each lane.
  var isRecording: Bool { !hasEnded && machine.phase == .loading && machine.isResumable == true }

  /// Whether the end leaves a record of all that was written.
  var isAtRest: Bool { hasEnded && machine.isResumable == true }

  /// The inode of the part.
  var inode: Int { Int(store.inode) }

  /// Calls a function of the machine, and executes the actions.
  private func report(_ fact: (inout DownloadMachine) -> [DownloadMachine.Action]) {
    guard !isDead, !hasEnded else { return }
    perform(fact(&machine))
  }

  private func perform(_ actions: [DownloadMachine.Action]) {
    for action in actions {
      world.note("\(action)")
      switch action {
      case .request(let lane, let request): begin(lane, request)
      case .cancel(let lane): drop(lane)
      case .continue(let lane): world.soon { self.feed(lane) }
      case .discard:
        watch.discarded()
        job = action
      case .reserve, .checkpoint, .verify, .install: job = action
      case .end(let failure): (hasEnded, self.failure) = (true, failure)
      }
    }
    startJob()
    setTimer()
    close()
  }

  private func setTimer() {
    guard !hasEnded, let next = machine.nextTime else { return }
    let time = max(UInt64((next * 1e9).rounded(.up)), world.now) + 1
    guard timer ?? .max > time else { return }
    timer = time
    world.at(time) {
      guard self.timer == time else { return }
      self.timer = nil
      self.report { $0.passTime(now: self.world.seconds) }
    }
  }

  // MARK: - The user

  func pause() { report { $0.pause(now: self.world.seconds) } }

  func resume() { report { $0.resume(now: self.world.seconds) } }

  func cancel() { report { $0.cancel(now: self.world.seconds) } }

  // MARK: - Lanes

  private func begin(_ number: Int, _ request: DownloadMachine.Request) {
    let mirror = plan.mirrors[request.source]
    requests += 1
    lanes[number] = Lane(mirror: mirror)
    watch.began(number)
    world.mirrors[mirror].running += 1
    let condition = request.fields.firstValue(named: "If-Range")
    world.later {
      guard !self.isDead, self.lanes[number] != nil else { return }
      let response = self.world.respond(mirror, range: request.fields.firstValue(named: "Range"), condition: condition)
      self.world.note("lane \(number): \(response.map { "\($0.status) \($0.fields) \($0.body.count)" } ?? "refused")")
      guard let response else { return self.end(number, .failed(isOfConnection: true)) }
      self.take(number, response)
    }
  }

  private func drop(_ number: Int) {
    guard let lane = lanes.removeValue(forKey: number) else { return }
    world.mirrors[lane.mirror].running -= 1
  }

  private func end(_ number: Int, _ end: DownloadMachine.LaneEnd) {
    world.note("lane \(number) ends: \(end)")
    drop(number)
    report { $0.ended(number, end, now: self.world.seconds) }
    if end == .badDigest { watch.limit(to: machine.written) }
  }

  private func take(_ number: Int, _ response: SimulatedMirror.Response) {
    lanes[number]?.response = response
    lanes[number]?.digest = DownloadDigest(contentDigest: response.values("content-digest"))
    let fields = FieldList(response.fields.map { Field($0.name, $0.value) })
    let head = DownloadMachine.Head(status: response.status, fields: fields, wallSeconds: 2_000_000_000)
    report { $0.head(number, head, now: self.world.seconds) }
    guard !isDead, lanes[number] != nil else { return }
    let isOfWhole = response.status == 200 || response.status == 206
    if isOfWhole, !store.note(reprDigest: response.values("repr-digest")) {
      drop(number)
      return report { $0.ended(number, .badDigest, now: self.world.seconds) }
    }
    schedule(number)
  }

  /// The next piece of a body arrives.
  private func schedule(_ number: Int) {
    guard let lane = lanes[number] else { return }
    let rest = lane.response.body.dropFirst(lane.received)
    let time = rest.isEmpty && lane.response.end == .stalled ? seconds(60) : world.mirrors[lane.mirror].pieceTime
    world.after(time) {
      guard !self.isDead, self.lanes[number] != nil else { return }
      if rest.isEmpty { return self.finish(number, lane.response.end) }
      let piece = rest.prefix(self.world.draw.number(1...self.world.mirrors[lane.mirror].pieceBytes))
      self.lanes[number]?.received += piece.count
      self.lanes[number]?.piece = piece
      self.lanes[number]?.digest?.update(Array(piece).span)
      self.feed(number)
    }
  }

  private func finish(_ number: Int, _ end: SimulatedMirror.Response.BodyEnd) {
    guard end == .complete else { return self.end(number, .failed(isOfConnection: true)) }
    self.end(number, lanes[number]?.digest?.isMatched() == false ? .badDigest : .complete)
  }

  private func feed(_ number: Int) {
    guard !isDead, !hasEnded, let lane = lanes[number] else { return }
    if lane.piece.isEmpty { return schedule(number) }
    let (space, actions) = machine.space(number, lane.piece.count, now: world.seconds)
    perform(actions)
    switch space {
    case .none:
      drop(number)
      // A body that is longer than its head says is dropped.
      watch.limit(to: machine.written)
    case .wait: break
    case .write(let skip, let offset, let count):
      guard skip + count > 0, skip + count <= lane.piece.count else {
        return world.ledger.complain("a piece of \(lane.piece.count) bytes: skip \(skip), write \(count)")
      }
      let bytes = Array(lane.piece.dropFirst(world.plant == .noSkip ? 0 : skip).prefix(count))
      lanes[number]?.piece.removeFirst(skip + count)
      if count == 0 { return feed(number) }
      write(number, bytes, offset..<offset + count)
    }
  }

  private func write(_ number: Int, _ bytes: [UInt8], _ range: Range<Int>) {
    writing.append(number)
    if world.plant == .reportsEarly { wrote(number, range) }
    world.soon {
      guard !self.isDead else { return }
      var failure: DownloadMachine.DiskError?
      do throws(Errno) { try self.store.write(bytes.span, at: range.lowerBound) } catch {
        failure = DownloadMachine.DiskError(error)
      }
      guard !self.isDead else { return }
      self.world.note("lane \(number) wrote \(range) \(failure.map { "\($0)" } ?? "")")
      if let index = self.writing.firstIndex(of: number) { self.writing.remove(at: index) }
      if self.lanes[number] != nil {
        if let failure {
          self.report { $0.writeFailed(number, failure, now: self.world.seconds) }
        } else if self.world.plant != .reportsEarly {
          self.wrote(number, range)
        }
        self.feed(number)
      }
      self.startJob()
      self.close()
    }
  }

  private func wrote(_ number: Int, _ range: Range<Int>) {
    watch.wrote(range, number)
    report { $0.wrote(number, range, now: self.world.seconds) }
  }

  // MARK: - The disk

  /// Begins the disk action. Writes of cancelled lanes end before, unless they do no harm.
  private func startJob() {
    guard !isDead, !isJobRunning, let job else { return }
    if case .checkpoint = job {
    } else if writing.contains(where: { lanes[$0] == nil }) {
      return
    }
    isJobRunning = true
    self.job = nil
    if job == .discard, world.plant == .lateDiscard {
      world.after(milliseconds(500)) { if !self.isDead { try? self.store.discard() } }
    }
    world.soon {
      guard !self.isDead else { return }
      let fact = self.world.interleaved { self.execute(job) }
      self.isJobRunning = false
      self.report(fact)
      if case .verify = job, !self.hasEnded, !self.isDead { self.watch.limit(to: self.machine.written) }
      self.close()
    }
  }

  private func execute(_ action: DownloadMachine.Action) -> (inout DownloadMachine) -> [DownloadMachine.Action] {
    func failure(_ call: () throws(Errno) -> Void) -> DownloadMachine.DiskError? {
      do throws(Errno) {
        try call()
        return nil
      } catch {
        return DownloadMachine.DiskError(error)
      }
    }
    let world = world
    let store = store
    switch action {
    case .discard:
      let error = failure { () throws(Errno) in if world.plant != .lateDiscard { try store.discard() } }
      if error == nil { world.ledger.discarded(part: store.inode) }
      return { $0.discarded(error, now: world.seconds) }
    case .reserve(let count):
      let error = failure { () throws(Errno) in try store.reserve(count) }
      return { $0.reserved(error, now: world.seconds) }
    case .checkpoint(let record):
      let error = failure { () throws(Errno) in if world.plant != .noRecord { try store.checkpoint(record) } }
      return { $0.checkpointed(error, now: world.seconds) }
    case .verify(let total):
      let verification = world.plant == .noVerification ? .fits : store.verify(total: total)
      world.note("\(verification)")
      return { $0.verified(verification, now: world.seconds) }
    case .install(let total):
      let error = failure { () throws(Errno) in try store.install(total: total) }
      return { $0.installed(error, now: world.seconds) }
    case .request, .cancel, .continue, .end: return { _ in [] }
    }
  }

  /// Ends the program after the machine.
  private func close() {
    guard hasEnded, !isClosed, !isDead, writing.isEmpty, !isJobRunning else { return }
    isClosed = true
    store.close()
  }
}
