import Foundation
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// A place for a download's file that outlives the task and the process.
///
/// The owner of the place keeps a record of the version that the file has bytes of. The record must never name a version
/// of which the file has no bytes, so the file is replaced only after `willReplace` has returned.
final class DownloadPlace: Sendable {
  let path: String
  /// The point from which the download continues when it starts.
  let start: ResumePoint?
  private let admit: @Sendable (HTTPURLResponse) throws(URLError) -> Void
  private let willReplace: @Sendable () async -> Bool

  private struct State {
    var point: ResumePoint?
    var isClosed = false
  }

  private let state: Mutex<State>

  /// - Parameters:
  ///   - start: The version that the file has bytes of, and the number of these bytes. The file may have more.
  ///   - admit: Throws if the content of a response must not come into the file. Called on the loop.
  ///   - willReplace: Returns when no record names a version that the file has bytes of, or `false` if one may do so.
  ///     Then the file stays.
  init(
    path: String, start: ResumePoint?, admit: @escaping @Sendable (HTTPURLResponse) throws(URLError) -> Void,
    willReplace: @escaping @Sendable () async -> Bool
  ) {
    self.path = path
    self.start = start
    self.admit = admit
    self.willReplace = willReplace
    state = Mutex(State(point: start))
  }

  /// The version that the file has bytes of, or `nil` if no later download can continue from them. The offset does not
  /// count the bytes that have arrived since the file was opened.
  var point: ResumePoint? {
    get { state.withLock { $0.point } }
    set { state.withLock { $0.point = newValue } }
  }

  func check(_ response: HTTPURLResponse) throws(URLError) { try admit(response) }

  /// Opens the file behind the bytes of `start`.
  ///
  /// - Returns: `nil` if the file has fewer bytes, or is not a regular file.
  func openStart() -> OpenFile? {
    guard let start, !state.withLock({ $0.isClosed }), let file = try? OpenFile(updatingRegular: path),
      let count = try? file.byteCount(),
      count >= start.offset
    else { return nil }
    return (try? file.cut(toBytes: start.offset)).map { file }
  }

  /// Creates an empty file in place of the one that there is.
  ///
  /// - Throws: `cancelled` if the place has been closed; `cannotWriteToFile` if a record may name the file's version.
  func replace() async throws(URLError) -> DownloadFile {
    point = nil
    guard await willReplace() else {
      throw URLError.make(.cannotWriteToFile, "the record of the file's version cannot be replaced")
    }
    return try state.withLock { state throws(URLError) in
      guard !state.isClosed else { throw URLError.make(.cancelled) }
      return try DownloadFile(replacing: URL(fileURLWithPath: path))
    }
  }

  /// From here on no file is created: the owner removes the one that there is.
  func close() { state.withLock { $0.isClosed = true } }
}
