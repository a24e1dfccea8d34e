import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

/// A machine, servers and a disk, each as simple as can be. A byte of the resource is the number of its version, and each
/// version has another size. In each step one thing happens, of all that can happen.
struct DownloadWorld {
  struct Mirror {
    var version = 1
    var acceptsRanges = true
    var hasTag = true
    var statesSize = true
  }

  struct Connection {
    let request: DownloadMachine.Request
    /// The body, once the head has arrived.
    var body: Range<Int>?
    var version = 0
    /// Bytes of a piece that have no place yet.
    var piece = 0
    /// A write that is under way.
    var write: Range<Int>?
    var isWaiting = false
    /// The positions that were written.
    var written = ByteRanges()
  }

  static let lanesMax = 3
  static let piece = 8
  static func size(_ version: Int) -> Int { 40 + version }

  var random: SeededGenerator
  var machine: DownloadMachine
  var mirrors: [Mirror]
  /// Whether anything may fail.
  var isWild = true
  /// Whether time passes while requests are under way, so that lanes may be slow.
  var hasTime: Bool
  var now = 0.0
  var connections: [Int: Connection] = [:]
  var work: DownloadMachine.Action?
  var end: DownloadFailure??
  /// The part, as programs read it, and as it is after a loss of power. Each byte is a version.
  var part: [Int: Int] = [:]
  var synced: [Int: Int] = [:]
  var record: DownloadRecord?
  var file: [Int: Int]?

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    mirrors = [Mirror(), Mirror()]
    hasTime = Bool.random(using: &random)
    machine = Self.machine(nil)
    func isRare(_ random: inout SeededGenerator) -> Bool { Int.random(in: 0..<6, using: &random) == 0 }
    for index in mirrors.indices {
      mirrors[index].acceptsRanges = !isRare(&random)
      mirrors[index].hasTag = !isRare(&random)
      mirrors[index].statesSize = !isRare(&random)
    }
  }

  static func machine(_ record: DownloadRecord?) -> DownloadMachine {
    var rules = DownloadRules()
    rules.lanesMax = lanesMax
    rules.pieceBytes = piece
    return DownloadMachine(rules, urls: ["a", "b"], record: record, inode: 7, fraction: { 0.5 })
  }

  mutating func isOne(in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

  /// Begins, also after a kill or a failure, with what the disk has.
  mutating func start() {
    (connections, work, end) = ([:], nil, nil)
    machine = Self.machine(record)
    apply(machine.start(now: now))
  }

  // MARK: - Steps

  /// Lets one thing happen.
  ///
  /// - Returns: Whether there was anything.
  mutating func step() -> Bool {
    if isWild, isOne(in: 12) { disturb() }
    if !isWild, machine.isPaused { apply(machine.resume(now: now)) }
    guard end == nil else { return true }
    let ready = connections.keys.filter { connections[$0]?.isWaiting == false }.sorted()
    let choices = ready.count + (work == nil ? 0 : 1) + (hasTime || ready.isEmpty && work == nil ? 1 : 0)
    guard choices > 0 else { return false }
    let choice = Int.random(in: 0..<choices, using: &random)
    if choice < ready.count {
      proceed(ready[choice])
    } else if choice == ready.count, let work {
      execute(work)
    } else {
      guard let time = machine.nextTime else { return !ready.isEmpty || work != nil || machine.isPaused }
      now = max(now, time)
      apply(machine.passTime(now: now))
    }
    return true
  }

  private mutating func disturb() {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: mirrors[Int.random(in: 0..<mirrors.count, using: &random)].version += 1
    case 1: apply(machine.pause(now: now))
    case 2:
      // Power is lost: the part has what was synced, and perhaps more.
      for (position, version) in part.sorted(by: { $0.key < $1.key }) where isOne(in: 2) { synced[position] = version }
      part = synced
      start()
    case 3:
      if let lane = connections.keys.sorted().first { apply(machine.writeFailed(lane, .full, now: now)) }
    default: apply(machine.resume(now: now))
    }
  }

  private mutating func proceed(_ lane: Int) {
    guard var connection = connections[lane] else { return }
    guard let body = connection.body else { return answer(lane, connection) }
    if let write = connection.write {
      for position in write { part[position] = connection.version }
      connection.write = nil
      connection.written.insert(write)
      connections[lane] = connection
      apply(machine.wrote(lane, write, now: now))
      checkUnkept(lane)
    } else if isWild, isOne(in: 20) {
      finish(lane, .failed(isOfConnection: true))
    } else if body.isEmpty {
      finish(lane, isWild && isOne(in: 30) ? .badDigest : .complete)
    } else {
      if connection.piece == 0 { connection.piece = Int.random(in: 1...min(body.count, 12), using: &random) }
      let (space, actions) = machine.space(lane, connection.piece, now: now)
      switch space {
      case .write(let skip, let offset, let count):
        #expect(skip >= 0 && count >= 0 && skip + count > 0 && skip + count <= connection.piece)
        #expect(offset == body.lowerBound + skip)
        connection.piece -= skip + count
        connection.body = (offset + count)..<body.upperBound
        if count > 0 { connection.write = offset..<(offset + count) }
        // No byte is fetched twice, but for slow lanes.
        #expect(
          hasTime
            || machine.written.gaps(in: offset..<(offset + count)) == (count > 0 ? [offset..<(offset + count)] : []))
      case .wait: connection.isWaiting = true
      case .none: break
      }
      connections[lane] = connection
      apply(actions)
    }
  }

  private mutating func finish(_ lane: Int, _ end: DownloadMachine.LaneEnd) {
    connections[lane] = nil
    apply(machine.ended(lane, end, now: now))
  }

  /// A lane has no more bytes than a piece that were written and are not kept.
  private func checkUnkept(_ lane: Int) {
    guard let connection = connections[lane], machine.isResumable == true else { return }
    var unkept = connection.written
    if let record { unkept.subtract(record.kept) }
    #expect(unkept.count <= Self.piece)
  }

  // MARK: - Servers

  private mutating func answer(_ lane: Int, _ connection: Connection) {
    if isWild, isOne(in: 12) { return finish(lane, .failed(isOfConnection: true)) }
    let mirror = mirrors[connection.request.source]
    let size = Self.size(mirror.version)
    var (status, body) = (200, 0..<size)
    var fields: FieldList = []
    let tag = "\"\(connection.request.source) \(mirror.version)\""
    if mirror.hasTag { fields.append(Field("ETag", tag)) }
    let asked = connection.request.fields.first { $0.name == "Range" }.flatMap { RequestedRange($0.value) }
    let condition = connection.request.fields.first { $0.name == "If-Range" }?.value
    if isWild, isOne(in: 12) {
      (status, body) = (503, 0..<0)
    } else if mirror.acceptsRanges, let asked, condition == nil || condition == tag {
      if var range = asked.bytes(ofTotal: size) {
        if isWild, isOne(in: 8) { range = range.lowerBound..<(range.lowerBound + 1 + range.count / 2) }
        (status, body) = (206, range)
        let total = mirror.statesSize ? size : nil
        fields.append(Field("Content-Range", ContentRange(bytes: range, total: total).text))
      } else {
        (status, body) = (416, 0..<0)
        fields.append(Field("Content-Range", "bytes */\(size)"))
      }
    }
    if status == 200, mirror.statesSize { fields.append(Field("Content-Length", "\(size)")) }
    connections[lane]?.body = body
    connections[lane]?.version = mirror.version
    apply(machine.head(lane, .init(status: status, fields: fields, wallSeconds: 0), now: now))
  }

  // MARK: - Actions

  private mutating func apply(_ actions: [DownloadMachine.Action]) {
    for action in actions {
      #expect(end == nil)
      switch action {
      case .request(let lane, let request):
        #expect(connections[lane] == nil)
        connections[lane] = Connection(request: request)
        #expect(connections.count <= Self.lanesMax)
      case .cancel(let lane):
        // A write that is under way ends, or does not.
        if let write = connections[lane]?.write, let version = connections[lane]?.version, isOne(in: 2) {
          for position in write { part[position] = version }
        }
        #expect(connections.removeValue(forKey: lane) != nil)
      case .continue(let lane):
        #expect(connections[lane]?.isWaiting == true)
        connections[lane]?.isWaiting = false
      case .discard, .reserve, .checkpoint, .verify, .install:
        #expect(work == nil)
        work = action
      case .end(let failure):
        #expect(connections.isEmpty && work == nil)
        end = .some(failure)
      }
    }
  }

  private mutating func execute(_ action: DownloadMachine.Action) {
    work = nil
    let error: DownloadMachine.DiskError? = isWild && isOne(in: 40) ? .full : nil
    switch action {
    case .discard:
      record = nil
      (part, synced) = ([:], [:])
      apply(machine.discarded(nil, now: now))
    case .reserve: apply(machine.reserved(error, now: now))
    case .checkpoint(let new):
      if error == nil {
        synced = part
        record = new
        check(new)
      }
      apply(machine.checkpointed(error, now: now))
    case .verify: apply(machine.verified(verification(), now: now))
    case .install(let total):
      let bytes = part.filter { $0.key < total }
      #expect(Set(bytes.values).count <= 1 && bytes.count == total)
      #expect(bytes.values.first.map { Self.size($0) == total } == true)
      (file, part, synced, record) = (bytes, [:], [:], nil)
      apply(machine.installed(nil, now: now))
    default: break
    }
  }

  /// Now and then the hash is wrong.
  private mutating func verification() -> DownloadMachine.Verification {
    isWild && isOne(in: 3) ? .wrong(isOne(in: 2) ? [] : [3..<9, 20..<29]) : .fits
  }

  /// A record names bytes of one version only, all of them on the disk, and the version's names.
  private func check(_ record: DownloadRecord) {
    var versions = Set<Int?>()
    for range in record.kept.ranges { for position in range { versions.insert(synced[position]) } }
    #expect(versions.count <= 1 && !versions.contains(nil))
    for version in versions.compactMap(\.self) {
      #expect(record.total.map { $0 == Self.size(version) } ?? true)
      for source in record.sources {
        #expect(source.validator == "\"\(source.url == "a" ? 0 : 1) \(version)\"")
      }
    }
  }
}
