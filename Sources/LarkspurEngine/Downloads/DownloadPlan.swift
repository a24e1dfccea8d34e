import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The plan of a ``Download``: its URLs, its file, and its limits.
///
/// ```swift
/// var plan = DownloadPlan("https://example.org/model.bin", to: "/data/model.bin")
/// plan.connections = 8
/// plan.checksum = try DownloadChecksum("sha256:…")
/// let file = try await session.download(plan).value
/// ```
///
/// While a download is not complete, its bytes are in `NAME.larkspur-part` in the destination's directory, and
/// `NAME.larkspur-download` says which of them are there. A plan of the same URL and destination continues them, in any
/// process.
public struct DownloadPlan: Hashable, Sendable {
  /// The URLs of the file, `http` or `https`. The first is preferred; all are mirrors of the same bytes.
  public var urls: [String]
  /// The path of the file. The directory has to exist. A regular file or a symbolic link of that name is replaced at the
  /// end, and a link is never followed.
  public var destination: String
  /// Maximum number of requests at once, from 1 to 64. The client's limit of connections for each host holds as well.
  public var connections = 4
  /// The smallest range in bytes that is worth a separate request, from 1.
  ///
  /// The number is also the limit of the bytes that a request has brought and that are not synced. After a kill, the next
  /// download fetches at most this number of bytes for each request once more.
  public var smallestPiece = 1 << 20
  /// The size of the file in bytes, if it is known in advance. Another size is an error.
  public var size: Int?
  /// The checksum of the whole file. Bytes that do not have it never get the file's name.
  public var checksum: DownloadChecksum?
  /// The hashes of the file's pieces. A piece with another hash is fetched once more, alone.
  public var pieceHashes: DownloadPieceHashes?
  /// The number of failures in a row without a byte for each mirror, and the delays between attempts.
  public var retry: RetryRules
  /// The lowest rate of a connection in bytes per second, or 0 for none. A connection that stays below it for 10 s is
  /// requested once more, from another mirror if there is one.
  public var lowestRate = 0
  /// Whether a download that could not be continued fails with its first response: the server has no strong validator, or
  /// accepts no ranges.
  public var requiresResumable = false
  /// The number of bytes of the file system that the download leaves free. Less counts as a full disk.
  public var bytesToLeave = 0
  /// Fields of all requests. `Range`, `If-Range` and `Accept-Encoding` belong to the download.
  public var fields: FieldList = []

  /// Creates a plan for a URL.
  public init(_ url: String, to destination: String) { self.init([url], to: destination) }

  /// Creates a plan for a file with mirrors. Nothing of a plan is checked before it is used.
  public init(_ urls: [String], to destination: String) {
    self.urls = urls
    self.destination = destination
    var retry = RetryRules()
    retry.attemptsMax = Self.attemptsMax
    self.retry = retry
  }

  private static let attemptsMax = 8
  /// Limits of a plan's settings.
  package static let connectionsRange = 1...64
  static let urlsMax = 256
}

// MARK: - The check

extension DownloadPlan {
  /// Checks the parts that need no file system.
  ///
  /// - Throws: An error with the code ``DownloadError/Code/invalidPlan`` that names the part.
  public func check() throws(DownloadError) {
    guard !urls.isEmpty else { throw .invalid("urls", "there is no URL") }
    guard urls.count <= Self.urlsMax else { throw .invalid("urls", "there are more than \(Self.urlsMax) URLs") }
    for url in urls {
      // The client reads a host in another script. Here any name serves, which is not used.
      do throws(LoadTarget.Invalid) {
        _ = try LoadTarget(url) { "host" }
      } catch {
        throw .invalid("urls", "\(url.withoutUserinfo) is no URL of the scheme http or https with a host")
      }
    }
    try checkDestination()
    guard Self.connectionsRange.contains(connections) else {
      throw .invalid("connections", "\(connections) is not from 1 to \(Self.connectionsRange.upperBound)")
    }
    guard smallestPiece >= 1 else { throw .invalid("smallestPiece", "\(smallestPiece) is less than 1 byte") }
    if let size, size < 0 { throw .invalid("size", "\(size) is less than 0 bytes") }
    if let size, let pieceHashes, !pieceHashes.cover(size) {
      throw .invalid(
        "pieceHashes",
        "\(pieceHashes.hashes.count) hashes of pieces of \(pieceHashes.pieceBytes) bytes are not those of \(size) bytes"
      )
    }
    guard lowestRate >= 0 else { throw .invalid("lowestRate", "\(lowestRate) is less than 0 bytes per second") }
    guard bytesToLeave >= 0 else { throw .invalid("bytesToLeave", "\(bytesToLeave) is less than 0 bytes") }
    for field in fields {
      guard !field.name.isEmpty, field.name.utf8.allSatisfy(Scan.isToken), field.value.isFieldValue else {
        throw .invalid("fields", "the field \(field.name.debugDescription) cannot be sent")
      }
      if let own = Self.ownFields.first(where: { $0.equalsIgnoringCase(field.name) }) {
        throw .invalid("fields", "\(own) belongs to the download")
      }
    }
  }

  private static let ownFields = ["Range", "If-Range", "Accept-Encoding"]

  private func checkDestination() throws(DownloadError) {
    let name =
      destination.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? ""[...].utf8
    let text = String(Substring(name))
    guard !text.isEmpty, text != ".", text != ".." else {
      throw .invalid("destination", "the path \(destination.debugDescription) does not end with a file's name")
    }
    guard !destination.utf8.contains(0) else { throw .invalid("destination", "the path has a character U+0000") }
    guard !DownloadStore.isReserved(text) else {
      throw .invalid("destination", "the name \(text.debugDescription) is that of another download's part or record")
    }
    guard name.count <= DownloadStore.nameBytesMax else {
      throw .invalid("destination", "the file's name is longer than \(DownloadStore.nameBytesMax) bytes")
    }
  }

  /// The part that the machine needs.
  ///
  /// - Parameter connectionsMax: The client's limit of connections for each host.
  func rules(connectionsMax: Int) -> DownloadRules {
    var rules = DownloadRules()
    rules.lanesMax = max(1, min(connections, connectionsMax))
    rules.pieceBytes = smallestPiece
    rules.requiresResumable = requiresResumable
    rules.lowestRate = lowestRate
    rules.retry = retry
    rules.expectedTotal = size
    return rules
  }
}
