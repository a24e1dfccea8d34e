import Foundation

/// A download task whose file stays in a given place, whatever becomes of the task.
final class KeptDownloadTask: URLSessionDownloadTask, @unchecked Sendable {
  private let place: DownloadPlace

  init(_ core: SessionCore, request: URLRequest, at place: DownloadPlace) {
    self.place = place
    super.init(core, request: request, output: .delegate)
  }

  override func prepare(_ transfer: Transfer) throws(URLError) {
    transfer.download = TaskDownload(at: place)
  }
}
