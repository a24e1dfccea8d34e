import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import TestKit

/// A world of one file to download: programs, servers, and a disk that ends the process or the machine at any call. One seed
/// determines one world.
///
/// A program has a real `DownloadMachine` and a real `DownloadStore`. It is killed, loses power, fails, is paused, meets
/// another program for the same destination, and is started again with other mirrors, until the faults end. Then the
/// download has to succeed.
package struct DownloadScenario {
  /// A fault of the driver or of the disk, which the checks have to find.
  package enum Plant: CaseIterable, Sendable {
    /// A sync of any file, or of the directory, has no effect.
    case ignoresSync
    /// A sync of the part has no effect, as if the record were written before.
    case ignoresPartSync
    /// A sync of the directory has no effect.
    case ignoresDirectorySync
    /// No record is written.
    case noRecord
    /// The part is emptied when bytes of the next version have been written.
    case lateDiscard
    /// A write is reported before it happens.
    case reportsEarly
    /// Bytes that are to be skipped are written.
    case noSkip
    /// All hashes fit.
    case noVerification
    /// Several programs get the lock.
    case ignoresLock
  }

  package struct Report: Equatable, Sendable {
    package var complaints: [String] = []
    package var runs = 0
    package var kills = 0
    package var requests = 0
    package var failures: [String: Int] = [:]
    /// The events, if they are kept.
    package var trace: [String] = []
  }

  private let world: DownloadWorld

  /// - Parameters:
  ///   - killedCall: The call of the disk at which the first program is killed. The second program has to succeed. If `nil`,
  ///     the seed decides on kills.
  ///   - isTraced: Whether the report has the events.
  package init(seed: UInt64, plant: Plant? = nil, killedCall: Int? = nil, isTraced: Bool = false) {
    world = DownloadWorld(seed, plant, killedCall: killedCall, isTraced: isTraced)
  }

  package func run() -> Report { world.run() }
}
