import Foundation
import LarkspurIO
import Synchronization

/// One permanent credential, as the file holds it.
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

  /// Nil: it is not for a file.
  init?(_ credential: URLCredential, _ space: URLProtectionSpace, isDefault: Bool) {
    guard credential.isPermanent, let user = credential.user, let password = credential.password else { return nil }
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

  /// The credential, or `nil` if no storage has written the record.
  var credential: URLCredential? {
    guard 0...Int(UInt16.max) ~= port, let persistence = URLCredential.Persistence(rawValue: persistence),
      persistence == .permanent || persistence == .synchronizable
    else { return nil }
    return URLCredential(user: user, password: password, persistence: persistence)
  }
}

/// So that equal contents are equal bytes.
extension CredentialRecord: Comparable {
  private var order: [String] { [host, String(port), `protocol` ?? "", proxyType ?? "", realm ?? "", method, user] }

  static func < (one: CredentialRecord, other: CredentialRecord) -> Bool {
    one.order.lexicographicallyPrecedes(other.order)
  }
}

/// The file of permanent credentials. It is replaced in one step: who reads it sees the old or the new one, also when the
/// writer is killed.
final class CredentialFile: Sendable {
  private struct Content: Codable {
    static let version = 1

    var version = Self.version
    var credentials: [CredentialRecord]
  }

  private struct Version: Codable {
    var version: Int
  }

  /// Bytes of the file that are read: a file that somebody else has put there would otherwise fill the memory.
  static let bytesMax = 8 << 20

  /// What tells one state of the file from another.
  private struct Stamp: Hashable {
    var date: Date?
    var number: Int?
    var size: Int?
  }

  let path: String
  /// As it was when it was last read or written.
  private struct Known: Hashable {
    var stamp: Stamp
    /// It may be written over.
    var isOurs = true
  }

  private let known = Mutex<Known?>(nil)

  init(path: String) { self.path = path }

  /// Nil: the user has no home.
  static let standard: CredentialFile? = {
    let environment = ProcessInfo.processInfo.environment
    return path(environment: environment, program: ProcessInfo.processInfo.processName).map(CredentialFile.init(path:))
  }()

  static func path(environment: [String: String], program: String) -> String? {
    // The XDG base directory specification: a path that is not absolute does not count.
    let home = environment["HOME"].map { $0 + "/.local/share" }
    guard let base = [environment["XDG_DATA_HOME"], home].compactMap({ $0 }).first(where: { $0.hasPrefix("/") })
    else { return nil }
    let name = program.replacing("/", with: "_")
    let isName = !name.isEmpty && name != "." && name != ".."
    return "\(base)/larkspur/\(isName ? name : "_")/credentials.json"
  }

  /// Nil: it is as it was when it was last read or written, or nothing can be said.
  func readIfChanged() -> [CredentialRecord]? {
    let stamp = stamp
    guard known.withLock({ $0 })?.stamp != stamp else { return nil }
    var records: [CredentialRecord] = []
    if stamp.number != nil {
      // What cannot be read now is tried again.
      guard let bytes = Self.read(path) else { return nil }
      let (decoder, data) = (JSONDecoder(), Data(bytes))
      // A later version's file is not ours to write; one that nobody could read is nobody's.
      if let version = try? decoder.decode(Version.self, from: data), version.version > Content.version {
        known.withLock { $0 = Known(stamp: stamp, isOurs: false) }
        return nil
      }
      records = (try? decoder.decode(Content.self, from: data))?.credentials ?? []
    }
    known.withLock { $0 = Known(stamp: stamp) }
    return records
  }

  /// Another writer is waited for so many times, a few milliseconds each: it may have been stopped in the middle, and is
  /// passed by then.
  private static let lockAttemptsMax = 1250

  /// Does what reads and writes the file, while no other process or thread does the same.
  func exclusively(_ body: () -> Void) {
    let url = URL(fileURLWithPath: path)
    let name = url.lastPathComponent + ".lock"
    let folder = try? Folder.ofOwner(at: url.deletingLastPathComponent().path)
    var lock: OpenFile?
    if let folder {
      for _ in 0..<Self.lockAttemptsMax {
        do {
          lock = try folder.lock(name)
        } catch {
          break
        }
        if lock != nil { break }
        Thread.sleep(forTimeInterval: 0.004)
      }
    }
    withExtendedLifetime(lock, body)
  }

  /// Called within `exclusively`, which has made the folder, and after the file has been read. False: it cannot be written,
  /// or what is there could not be read, and would be lost.
  @discardableResult func write(_ records: [CredentialRecord]) -> Bool {
    guard known.withLock({ $0 }) == Known(stamp: stamp) else { return false }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    guard let data = try? encoder.encode(Content(credentials: records)) else { return false }
    let temporary = "\(path).\(UInt64.random(in: 0 ... .max))"
    do {
      let file = try OpenFile(creating: temporary)
      // Before there is anything in it to read.
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
      // No storage writes more than that.
      return try OpenFile(readingRegular: path).readToEnd(max: bytesMax) ?? []
    } catch {
      return nil
    }
  }
}
