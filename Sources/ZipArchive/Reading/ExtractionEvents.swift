/// Calls the delegate and the progress handler of an extraction, in SSZipArchive's order. Not for nested archives.
final class ExtractionEvents {
  typealias ProgressHandler = (String, unz_file_info, Int, Int) -> Void

  private let path: String
  private let destination: String
  private let info: unz_global_info
  private let size: UInt64
  private let delegate: (any SSZipArchiveDelegate)?
  private let progressHandler: ProgressHandler?
  private var position: UInt64 = 0

  init() {
    (path, destination, size) = ("", "", 0)
    info = unz_global_info()
    (delegate, progressHandler) = (nil, nil)
  }

  init(
    path: String, destination: String, size: UInt64, entryCount: Int, delegate: (any SSZipArchiveDelegate)?,
    progressHandler: ProgressHandler?
  ) {
    (self.path, self.destination, self.size) = (path, destination, size)
    info = unz_global_info(number_entry: UInt(clamping: entryCount))
    (self.delegate, self.progressHandler) = (delegate, progressHandler)
  }

  private var total: Int { Int(clamping: info.number_entry) }

  func start() {
    delegate?.zipArchiveWillUnzipArchive(atPath: path, zipInfo: info)
    delegate?.zipArchiveProgressEvent(0, total: size)
  }

  /// - Returns: `false` if the delegate cancels the extraction.
  func shouldExtract(_ index: Int, _ record: EntryRecord) -> Bool {
    guard let delegate else { return true }
    let info = unz_file_info(record)
    position = min(position.addingSaturated(record.compressedSize), size)
    guard
      delegate.zipArchiveShouldUnzipFile(at: index, totalFiles: total, archivePath: path, fileInfo: info)
    else { return false }
    delegate.zipArchiveWillUnzipFile(at: index, totalFiles: total, archivePath: path, fileInfo: info)
    delegate.zipArchiveProgressEvent(position, total: size)
    return true
  }

  func didExtract(_ index: Int, _ record: EntryRecord, _ entry: String) {
    if delegate == nil, progressHandler == nil { return }
    let info = unz_file_info(record)
    delegate?.zipArchiveDidUnzipFile(at: index, totalFiles: total, archivePath: path, fileInfo: info)
    let place = destination.hasSuffix("/") ? destination + entry : destination + "/" + entry
    delegate?.zipArchiveDidUnzipFile(at: index, totalFiles: total, archivePath: path, unzippedFilePath: place)
    progressHandler?(entry, info, index, total)
  }

  func finish(_ destination: String) {
    delegate?.zipArchiveDidUnzipArchive(atPath: path, zipInfo: info, unzippedPath: destination)
    delegate?.zipArchiveProgressEvent(size, total: size)
  }
}
