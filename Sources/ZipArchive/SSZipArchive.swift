import Foundation
import LarkspurIO
import Synchronization

/// Creates and extracts zip archives: SSZipArchive's class with the names that Apple's importer gives it.
///
/// All functions block their thread until they are done. The class functions may be called on any number of threads at
/// once; use an object on one thread at a time.
open class SSZipArchive: NSObject {
  let path: String
  var writer: ArchiveWriter?

  /// The error of the latest call that opens, adds or closes, or `nil` if the call returned `true`. Has
  /// ``SSZipArchiveErrorDomain``. SSZipArchive has no such property.
  public internal(set) var lastError: NSError?

  /// Creates an object that writes the archive at a path. ``open()`` or ``openForAppending()`` comes next.
  public init(path: String) {
    self.path = path
    super.init()
  }

  private static let defaultLimits = Mutex(SSZipArchiveLimits())

  /// The default limits of extractions and new archives. An extraction reads them when it begins, and an archive
  /// when it is opened for writing.
  public static var limits: SSZipArchiveLimits {
    get { defaultLimits.withLock { $0 } }
    set { defaultLimits.withLock { $0 = newValue } }
  }

  // MARK: - Looking into archives

  /// Whether an entry of the archive is encrypted. `false` if the file is not an archive.
  open class func isFilePasswordProtected(atPath path: String) -> Bool {
    guard let reader = try? Extraction.open(path) else { return false }
    return (0..<reader.entryCount).contains { (try? reader.record($0))?.isEncrypted == true }
  }

  /// Whether the password opens the archive. `true` if no entry with contents is encrypted.
  ///
  /// Tries the smallest encrypted entry that has contents, and reads up to 1 MiB of it. With ZipCrypto, a wrong password
  /// passes for an entry larger than that in one of 256 cases.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - password: The password.
  ///   - error: Receives an error with ``SSZipArchiveErrorDomain`` if the archive cannot be read. A wrong password is
  ///     no error.
  open class func isPasswordValidForArchive(
    atPath path: String, password: String, error: inout NSError?
  ) -> Bool {
    error = nil
    do {
      return try PasswordCheck.passes(path, password)
    } catch let failure {
      error = failure as NSError
      return false
    }
  }

  /// Whether the password opens the archive, for `error: nil`. `false` also if the archive cannot be read.
  public class func isPasswordValidForArchive(atPath path: String, password: String, error: Never?) -> Bool {
    var ignored: NSError?
    return isPasswordValidForArchive(atPath: path, password: password, error: &ignored)
  }

  /// The sizes of all entries together in bytes, as the archive says. 0 after an error.
  ///
  /// - Parameters:
  ///   - path: The archive.
  ///   - error: Receives an error with ``SSZipArchiveErrorDomain`` if the archive cannot be read.
  open class func payloadSizeForArchive(atPath path: String, error: inout NSError?) -> NSNumber {
    error = nil
    do {
      return try payloadSizeForArchive(atPath: path)
    } catch let failure {
      error = failure as NSError
      return 0
    }
  }

  /// The sizes of all entries together in bytes, as the archive says, for `error: nil`. 0 after an error.
  public class func payloadSizeForArchive(atPath path: String, error: Never?) -> NSNumber {
    (try? payloadSizeForArchive(atPath: path)) ?? 0
  }

  /// The sizes of all entries together in bytes, as the archive says.
  ///
  /// - Throws: An error with ``SSZipArchiveErrorDomain`` if the archive cannot be read.
  public class func payloadSizeForArchive(atPath path: String) throws -> NSNumber {
    let reader = try Extraction.open(path)
    do {
      var size: UInt64 = 0
      for index in 0..<reader.entryCount { size = size.addingSaturated(try reader.record(index).size) }
      return NSNumber(value: size)
    } catch {
      throw error.error(path, or: .failedOpenZipFile)
    }
  }
}

/// The check of a password without an extraction.
enum PasswordCheck {
  /// Number of bytes that are read at most.
  private static let bytesMax = 1 << 20

  static func passes(_ path: String, _ password: String) throws -> Bool {
    let reader = try Extraction.open(path)
    guard let (index, record) = try smallestEncrypted(reader, path) else { return true }
    do throws(ZipFailure) {
      let contents = try reader.open(index, record, password: password)
      var rest = bytesMax
      while rest > 0 {
        let count = try contents.read(atMost: min(rest, 1 << 16)).count
        if count == 0 { break }
        rest -= count
      }
      return true
    } catch {
      // A wrong key makes bytes that are no deflate stream, or have another checksum.
      return false
    }
  }

  private static func smallestEncrypted(
    _ reader: ZipReader, _ path: String
  ) throws -> (index: Int, record: EntryRecord)? {
    var smallest: (index: Int, record: EntryRecord)?
    do throws(ZipFailure) {
      for index in 0..<reader.entryCount {
        let record = try reader.record(index)
        // An entry without contents passes with any password.
        if record.isEncrypted, record.size > 0, smallest.map({ record.size < $0.record.size }) ?? true {
          smallest = (index, record)
        }
      }
    } catch {
      throw error.error(path, or: .failedOpenZipFile)
    }
    return smallest
  }
}
