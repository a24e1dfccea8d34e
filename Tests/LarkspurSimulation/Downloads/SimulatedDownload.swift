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
    var checksum: DownloadChecksum?
    var hashes: DownloadPieceHashes?
  }

  private struct Lane {
    let mirror: Int
    /// The first byte that was asked for.
    let first: Int
    var response: SimulatedMirror.Response?
    var position = 0
    /// The bytes that wait for room.
    var piece: ArraySlice<UInt8> = []
    var isConnected = false
  }

  let plan: Plan
  private let world: DownloadWorld
  private let store: DownloadStore
  private var machine: DownloadMachine
  private(set) var watch: DownloadWatch
  private var lanes: [Int: Lane] = [:]
  private var jobs: [DownloadMachine.Action] = []
  private var isJobRunning = false
  /// Number of writes that have begun, also of lanes that were cancelled.
  private var writesInFlight = 0
  private var timer: UInt64?
  private(set) var isEnded = false
  private(set) var failure: DownloadFailure?
  /// Whether the program was killed: it does nothing any more.
  private var isDead: Bool { world.disk !== disk || disk.isDead }
  private let disk: ScriptedDisk
}
