import Foundation
import LarkspurIO

/// One extraction of an archive.
final class Extraction {
  struct Options {
    var preservesAttributes = true
    var overwrites = true
    /// How deep archives in the archive are extracted.
    var nestedLevel = 0
    var password: String?
    var limits = SSZipArchiveLimits()
    var links = LinkRule.destination
  }

  enum LinkRule {
    /// Links stay in the destination.
    case destination
    /// Links stay in the directory at this path.
    case directory(String)
    case anywhere
  }

  /// Nested archives deeper than this stay files, whatever the caller's options are.
  static let nestedLevelMax = 32
  private static let pieceMax = 1 << 16

  private let options: Options
  private let destination: DestinationTree
  private var meter: ExtractionMeter
  /// The directory that links must not leave, or `nil` if they may.
  private let linkRoom: [String]?
  private var directories: [(path: [String], permissions: UInt32?, modified: Double?)] = []

  /// Extracts an archive, or leaves the destination as it was.
  ///
  /// - Throws: `NSError` with ``SSZipArchiveErrorDomain``, or `CocoaError.userCancelled`.
  static func run(
    _ path: String, to destination: String, _ options: Options, delegate: (any SSZipArchiveDelegate)? = nil,
    progressHandler: ExtractionEvents.ProgressHandler? = nil
  ) throws {
    guard !path.isEmpty, !destination.isEmpty else {
      throw SSZipArchiveErrorCode.invalidArguments.error("The path of the archive or of the destination is empty.")
    }
    let reader = try open(path)
    let events = ExtractionEvents(
      path: path, destination: destination, size: reader.size, entryCount: reader.entryCount, delegate: delegate,
      progressHandler: progressHandler)
    do {
      // Everything that the central directory shows is checked before the destination is touched.
      var meter = ExtractionMeter(options.limits, archiveSize: reader.size)
      let contents = try Contents(reader, &meter, options)
      let extraction = Extraction(try DestinationTree(destination), meter, options)
      do {
        try extraction.extract(contents, below: [], level: options.nestedLevel, events)
      } catch {
        throw extraction.destination.rollBack(after: error)
      }
      extraction.destination.finish(options.preservesAttributes ? extraction.directories : [])
    } catch let refusal as ArchiveRefusal {
      throw refusal.error
    }
    events.finish(destination)
  }

  /// Opens an archive. A pipe or a device is not opened, because that could wait forever.
  static func open(_ path: String) throws -> ZipReader {
    do {
      return try ZipReader(OpenFile(readingRegular: path))
    } catch let failure as ZipFailure {
      throw failure.error(path, or: .failedOpenZipFile)
    } catch {
      throw SSZipArchiveErrorCode.failedOpenZipFile.error("\(path): \(error)", underlying: error)
    }
  }

  /// An archive with its plan.
  private struct Contents {
    let reader: ZipReader
    let records: [EntryRecord]
    let plan: ArchivePlan

    init(_ reader: ZipReader, _ meter: inout ExtractionMeter, _ options: Options) throws {
      self.reader = reader
      try meter.addEntries(reader.entryCount)
      var records: [EntryRecord] = []
      var plan = ArchivePlan(archiveSize: reader.size, options.limits)
      do {
        for index in 0..<reader.entryCount {
          if Task.isCancelled { throw CocoaError(.userCancelled) }
          let record = try reader.record(index)
          try plan.add(record)
          records.append(record)
        }
      } catch let failure as ZipFailure {
        throw failure.error("The archive's directory", or: .failedOpenZipFile)
      }
      (self.records, self.plan) = (records, plan)
      try meter.check(plan.totalSize)
    }
  }

  private init(_ destination: DestinationTree, _ meter: ExtractionMeter, _ options: Options) {
    self.destination = destination
    self.meter = meter
    self.options = options
    linkRoom =
      switch options.links {
      case .destination: destination.path
      case .directory(let path):
        URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().pathComponents.filter { $0 != "/" }
      case .anywhere: nil
      }
  }

  // MARK: - Entries

  private func extract(_ contents: Contents, below prefix: [String], level: Int, _ events: ExtractionEvents) throws {
    events.start()
    for entry in contents.plan.entries {
      let record = contents.records[entry.index]
      guard events.shouldExtract(entry.index, record), !Task.isCancelled else { throw CocoaError(.userCancelled) }
      let path = prefix + entry.path
      guard entry.isWanted, try extract(entry, record, contents.reader, to: path, level) else { continue }
      events.didExtract(entry.index, record, entry.path.joined(separator: "/"))
    }
  }

  /// - Returns: `false` if a file is kept that was there before.
  private func extract(
    _ entry: ArchivePlan.Entry, _ record: EntryRecord, _ reader: ZipReader, to path: [String], _ level: Int
  ) throws -> Bool {
    if entry.kind == .directory {
      try destination.makeDirectory(at: path)
      directories.append((path, record.permissions, record.modified))
      return true
    }
    if !options.overwrites, try destination.kind(at: path) != nil { return false }
    if entry.kind == .link {
      var target: [UInt8] = []
      try read(entry, record, reader) { target += $0 }
      let text = String(decoding: target, as: UTF8.self)
      if let linkRoom {
        let parent = destination.path + path.dropLast()
        guard LinkTarget.stays(text, from: parent, within: linkRoom) else {
          throw ArchiveRefusal(.linkLeavesDestination, entry.name)
        }
      }
      return try destination.placeLink(to: text, at: path, isReplacing: options.overwrites)
    }
    let (file, staged) = try destination.stageFile()
    try read(entry, record, reader) { piece in
      do {
        try file.write(piece.span)
      } catch {
        throw SSZipArchiveErrorCode.failedToWriteFile.error("\(entry.name): \(error)", underlying: error)
      }
    }
    if level > 0, try extractNested(file, entry, below: Array(path.dropLast()), level) {
      destination.discard(staged)
      return true
    }
    setAttributes(of: file, record)
    return try destination.place(staged, at: path, isReplacing: options.overwrites)
  }

  /// Reads the contents of an entry, and checks their size. libzip checks the checksum.
  private func read(
    _ entry: ArchivePlan.Entry, _ record: EntryRecord, _ reader: ZipReader, _ take: ([UInt8]) throws -> Void
  ) throws {
    var rest = record.size
    do {
      let contents = try reader.open(entry.index, record, password: options.password)
      while true {
        let piece: [UInt8]
        do {
          piece = try contents.read(atMost: Self.pieceMax)
        } catch {
          throw error.error(entry.name, or: .fileContentNotReadable)
        }
        if piece.isEmpty { break }
        if Task.isCancelled { throw CocoaError(.userCancelled) }
        let (left, overflows) = rest.subtractingReportingOverflow(UInt64(piece.count))
        if overflows { throw ArchiveRefusal(.wrongSize, entry.name) }
        rest = left
        try meter.add(piece.count, entry.name)
        try take(piece)
      }
    } catch let failure as ZipFailure {
      throw failure.error(entry.name, or: .failedOpenFileInZip)
    }
    if rest > 0 { throw ArchiveRefusal(.wrongSize, entry.name) }
  }

  /// Extracts an archive that is an entry of another archive.
  ///
  /// - Returns: `false` if the file is not an archive.
  private func extractNested(
    _ file: OpenFile, _ entry: ArchivePlan.Entry, below prefix: [String], _ level: Int
  ) throws -> Bool {
    guard entry.path.last?.lowercased().hasSuffix(".zip") == true, let reader = try? ZipReader(file) else {
      return false
    }
    let contents = try Contents(reader, &meter, options)
    try extract(contents, below: prefix, level: level - 1, ExtractionEvents())
    return true
  }

  /// Sets the attributes of the archive. SSZipArchive ignores failures, too: some file systems have no permissions.
  private func setAttributes(of file: OpenFile, _ record: EntryRecord) {
    guard options.preservesAttributes else { return }
    if let permissions = record.permissions { try? file.setPermissions(permissions | 0o600) }
    if let modified = record.modified { try? file.setModificationTime(modified) }
  }
}
