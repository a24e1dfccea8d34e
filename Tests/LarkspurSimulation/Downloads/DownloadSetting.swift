import LarkspurEngine
import LarkspurHTTP
import LarkspurTLS

/// What does not change in a world of downloads: the file's versions, the servers' habits, and what the user knows.
struct DownloadSetting {
  let versions: SimulatedVersions
  let mirrors: [SimulatedMirror]
  let hashes: DownloadHashes
  /// Whether each plan has one URL.
  let isOneURL: Bool
  let requiresResumable: Bool
  let knowsTotal: Bool
  let lowestRate: Int
  /// Number of runs before nothing goes wrong any more.
  let runs: Int

  init(_ draw: inout SeededRandom) {
    let count = draw.pick([1, 1, 2, 3, 4])
    let isVerified = draw.chance(1, of: 2)
    isOneURL = count == 1 || draw.chance(1, of: 4)
    // Without a hash nothing but the size shows that two servers have different versions.
    let areSizesEqual = (isVerified || isOneURL) && draw.chance(1, of: 2)
    let size = draw.chance(1, of: 16) ? draw.number(0...2) : draw.number(1...draw.pick([20, 60, 200]))
    versions = SimulatedVersions(
      sizes: (0..<draw.number(1...3)).map { areSizesEqual ? size : size + 20 * (($0 * 2) % 3) })
    runs = draw.number(0...6)
    lowestRate = draw.chance(1, of: 4) ? 1 : 0
    knowsTotal = draw.chance(1, of: 6)
    let isResumable = draw.chance(2, of: 3)
    let isStrict = draw.chance(1, of: 8)
    requiresResumable = isStrict
    // A server that lies is found by a hash only.
    let mayLie = isVerified || draw.chance(1, of: 16)
    let faults = SimulatedMirror.Fault.allCases.filter { ($0 != .lie || mayLie) && draw.chance(1, of: 3) }
    mirrors = (0..<count).map { number in
      var mirror = SimulatedMirror(number: number)
      if isResumable || !isStrict && draw.chance(1, of: 2) {
        mirror.validator = draw.pick([.strong, .strong, .date, .bare])
      } else {
        mirror.validator = draw.pick([.weak, .none, .strong])
        mirror.hasRanges = mirror.validator != .strong && draw.chance(1, of: 2)
      }
      mirror.announcesRanges = isStrict || draw.chance(1, of: 2)
      mirror.isTerse = draw.chance(1, of: 3)
      mirror.hasLength = draw.chance(3, of: 4)
      if draw.chance(1, of: 16) { mirror.coding = "gzip" }
      if draw.chance(1, of: 8) { mirror.rangeMax = draw.number(1...60) }
      if draw.chance(1, of: 4) { mirror.connectionsMax = draw.number(1...3) }
      mirror.pieceTime = milliseconds(draw.pick([1, 10, 10, 50, 400]))
      mirror.pieceBytes = draw.pick([8, 24, 64])
      mirror.digest = draw.chance(1, of: 6) ? draw.pick([.content, .whole]) : nil
      mirror.faults = faults
      mirror.faultiness = faults.isEmpty ? 0 : draw.pick([0, 1, 4, 10])
      return mirror
    }
    hashes = isVerified ? Self.hashes(versions.bytes(of: versions.last), &draw) : DownloadHashes()
  }

  private static func hashes(_ bytes: [UInt8], _ draw: inout SeededRandom) -> DownloadHashes {
    let pieceBytes = draw.number(10...100)
    let pieces = stride(from: 0, to: bytes.count, by: pieceBytes).map { Array(bytes[$0...].prefix(pieceBytes)) }
    let hasPieces = draw.chance(1, of: 2)
    return DownloadHashes(
      checksum: hasPieces && draw.chance(1, of: 2)
        ? nil : try? DownloadChecksum(.md5, SimulatedMirror.hash(bytes, .md5)),
      pieces: hasPieces
        ? try? DownloadPieceHashes(
          .md5, pieceBytes: pieceBytes, hashes: pieces.map { SimulatedMirror.hash($0, .md5) }) : nil)
  }

  /// The versions that the destination may have.
  var allowed: Set<Int> { hashes.isEmpty ? Set(versions.sizes.indices) : [versions.last] }

  /// Whether wrong bytes cannot be found.
  var isBlind: Bool { hashes.isEmpty && mirrors.contains { $0.faultiness > 0 && $0.faults.contains(.lie) } }

  /// Whether servers may have different versions that nothing but a hash tells apart.
  var mayMix: Bool { !isOneURL && !hashes.isEmpty && Set(versions.sizes).count < versions.sizes.count }

  /// Whether no server can do what the user asks for.
  var isHopeless: Bool { requiresResumable && !mirrors.contains(where: \.isResumable) }

  /// The plan of the next program.
  func plan(_ draw: inout SeededRandom, isCalm: Bool) -> SimulatedDownload.Plan {
    var order = Array(mirrors.indices)
    for index in order.indices { order.swapAt(index, draw.number(index...order.count - 1)) }
    var rules = DownloadRules()
    rules.lanesMax = draw.number(1...8)
    rules.pieceBytes = draw.pick([4, 16, 16, 50])
    rules.requiresResumable = requiresResumable
    rules.lowestRate = lowestRate
    rules.slowSeconds = 5
    rules.retry.attemptsMax = draw.pick([3, 3, 8])
    rules.expectedTotal = knowsTotal ? versions.sizes[versions.last] : nil
    return SimulatedDownload.Plan(
      mirrors: Array(order.prefix(isOneURL ? 1 : draw.number(1...order.count))), rules: rules, hashes: hashes)
  }
}
