import Foundation
import LarkspurIO
import Synchronization

/// A credential, as the file stores those that are permanent.
struct CredentialRecord: Codable, Hashable, Sendable {
  var host: String
  var port: Int
  var `protocol`: String?
  var proxyType: String?
  var isProxy: Bool
  var realm: String?
  var method: String
  var user: String
  var password: String
  var persistence: UInt
  var isDefault: Bool

  /// Creates the record of a credential, or returns `nil` if the credential has no password.
  init?(_ credential: URLCredential, _ space: URLProtectionSpace, isDefault: Bool) {
    guard let user = credential.user, let password = credential.password else { return nil }
    host = space.host
    port = space.port
    `protocol` = space.protocol
    proxyType = space.proxyType
    isProxy = space.isProxy()
    realm = space.realm
    method = space.authenticationMethod
    self.user = user
    self.password = password
    persistence = credential.persistence.rawValue
    self.isDefault = isDefault
  }

  var space: URLProtectionSpace {
    isProxy
      ? URLProtectionSpace(proxyHost: host, port: port, type: proxyType, realm: realm, authenticationMethod: method)
      : URLProtectionSpace(host: host, port: port, protocol: `protocol`, realm: realm, authenticationMethod: method)
  }

  /// The credential, or `nil` if the record's port or persistence is one that no storage writes.
  var credential: URLCredential? {
    guard 0...Int(UInt16.max) ~= port, let persistence = URLCredential.Persistence(rawValue: persistence),
      persistence == .permanent || persistence == .synchronizable
    else { return nil }
    return URLCredential(user: user, password: password, persistence: persistence)
  }
}

/// Orders the records, so that equal contents give equal bytes.
extension CredentialRecord: Comparable {
  private var order: [String] { [host, String(port), `protocol` ?? "", proxyType ?? "", realm ?? "", method, user] }

  static func < (one: CredentialRecord, other: CredentialRecord) -> Bool {
    one.order.lexicographicallyPrecedes(other.order)
  }
}

/// The file of permanent credentials. A write replaces the file in one step: a reader sees the old file or the new one,
/// even if the writer is killed.
final class CredentialFile: Sendable {
  private struct Content: Codable {
    static let version = 1

    var version = Self.version
    var credentials: [CredentialRecord]
  }

  private struct Version: Codable {
    var version: Int
  }

  /// Maximum number of bytes that are read. A larger file, which no storage writes, would fill the memory.
  static let bytesMax = 8 << 20

  /// The attributes that distinguish one state of the file from another.
  private struct Stamp: Hashable {
    var date: Date?
    var number: Int?
    var size: Int?
  }

  let path: String
  /// The state of the file when it was last read or written.
  private struct Known: Hashable {
    var stamp: Stamp
    /// Whether this version of Larkspur may replace the file.
    var isOurs = true
  }

  private let known = Mutex<Known?>(nil)

  init(path: String) { self.path = path }

  /// The file of this program, or `nil` if neither `XDG_DATA_HOME` nor `HOME` is an absolute path.
  static let standard: CredentialFile? = {
    let environment = EnvironmentVariable.all
    return path(environment: environment, program: ProcessInfo.processInfo.processName).map(CredentialFile.init(path:))
  }()

  static func path(environment: [String: String], program: String) -> String? {
    // XDG Base Directory Specification: a relative path is ignored.
    let home = environment["HOME"].map { $0 + "/.local/share" }
    guard let base = [environment["XDG_DATA_HOME"], home].compactMap({ $0 }).first(where: { $0.hasPrefix("/") })
    else { return nil }
    let name = program.replacing("/", with: "_")
    let isName = !name.isEmpty && name != "." && name != ".."
    return "\(base)/larkspur/\(isName ? name : "_")/credentials.json"
  }

  /// Reads the file if it has changed since it was last read or written.
  ///
  /// - Returns: The records, or `nil` if the file has not changed, cannot be read, or is of a later version.
  func readIfChanged() -> [CredentialRecord]? {
    let stamp = stamp
    guard known.withLock({ $0 })?.stamp != stamp else { return nil }
    var records: [CredentialRecord] = []
    if stamp.number != nil {
      // A failed read leaves `known` unchanged, so that the next call tries again.
      guard let bytes = Self.read(path) else { return nil }
      let (decoder, data) = (JSONDecoder(), Data(bytes))
      // A later version's file is never replaced. A file that cannot be decoded counts as empty, and may be replaced.
      if let version = try? decoder.decode(Version.self, from: data), version.version > Content.version {
        known.withLock { $0 = Known(stamp: stamp, isOurs: false) }
        return nil
      }
      records = (try? decoder.decode(Content.self, from: data))?.credentials ?? []
    }
    known.withLock { $0 = Known(stamp: stamp) }
    return records
  }

  /// Maximum number of attempts to get the lock, 4 ms apart: 5 s. Then the other writer is taken to be stopped, and the
  /// work is done without the lock.
  private static let lockAttemptsMax = 1250

  /// Runs work that reads and writes the file while it holds the lock that other processes and threads take. Runs it
  /// without the lock if the directory cannot be opened, locking fails, or another holder keeps the lock for all of
  /// `lockAttemptsMax`.
  func exclusively(_ body: () -> Void) {
    let url = URL(fileURLWithPath: path)
    let name = url.lastPathComponent + ".lock"
    let directory = try? Directory.ofOwner(at: url.deletingLastPathComponent().path)
    var lock: FileLock?
    if let directory {
      for _ in 0..<Self.lockAttemptsMax {
        do {
          lock = try directory.lock(name)
        } catch {
          break
        }
        if lock != nil { break }
        Thread.sleep(forTimeInterval: 0.004)
      }
    }
    withExtendedLifetime(lock, body)
  }

  /// Replaces the file. Call this within `exclusively`, which creates the directory, and after `readIfChanged`.
  ///
  /// - Returns: Whether the file was written. `false` if writing failed, or if the current file was not read or is a
  ///   later version's, and would be lost.
  @discardableResult func write(_ records: [CredentialRecord]) -> Bool {
    guard known.withLock({ $0 }) == Known(stamp: stamp) else { return false }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    guard let data = try? encoder.encode(Content(credentials: records)) else { return false }
    let temporary = "\(path).\(UInt64.random(in: 0 ... .max))"
    do {
      let file = try OpenFile(creating: temporary)
      // Restrict access before the file has any content.
      try file.setPermissions(0o600)
      try file.write(String(decoding: data, as: UTF8.self))
      try FilePaths.rename(temporary, to: path)
    } catch {
      try? FilePaths.remove(temporary)
      return false
    }
    known.withLock { $0 = Known(stamp: stamp) }
    return true
  }

  private var stamp: Stamp {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return Stamp() }
    return Stamp(
      date: attributes[.modificationDate] as? Date, number: (attributes[.systemFileNumber] as? NSNumber)?.intValue,
      size: (attributes[.size] as? NSNumber)?.intValue)
  }

  private static func read(_ path: String) -> [UInt8]? {
    do throws(Errno) {
      // A file of more than `bytesMax` bytes counts as empty: no storage writes one.
      return try OpenFile(readingRegular: path).readToEnd(max: bytesMax) ?? []
    } catch {
      return nil
    }
  }
}
