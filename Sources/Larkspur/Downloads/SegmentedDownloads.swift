import Foundation
import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// How the download tasks of a session load their files: in ranges, over several connections at once.
public struct URLSessionSegmentedDownloads: Hashable, Sendable, Codable {
  /// Maximum number of requests at once for each task, from 1 to 64. The session's
  /// `httpMaximumConnectionsPerHost` holds as well.
  public var connections = 4
  /// The smallest range in bytes that is worth a separate request, from 1.
  public var smallestPiece = 1 << 20

  /// Creates the settings with their defaults.
  public init() {}
}

/// A request for a segment of a download task's file. The program does not see the task: its delegates are asked about
/// challenges and redirections of the download task.
final class SegmentTask: URLSessionDataTask, @unchecked Sendable {
  private let download: URLSessionTask

  init(of download: URLSessionTask, _ core: SessionCore, _ request: URLRequest, _ channel: BytesChannel) {
    self.download = download
    super.init(core, request: request, output: .bytes(channel))
  }

  override var isKnown: Bool { false }
  override var owner: URLSessionTask { download }
}

/// The client of a download task's engine: the session, with the task's request and for its delegates.
final class SegmentClient: DownloadClient {
  private let task: URLSessionTask
  private let request: URLRequest
  private let session: URLSession
  /// Throws if the content of a response must not come into the file.
  private let admit: @Sendable (HTTPURLResponse) throws(URLError) -> Void

  struct State {
    /// The task's response: the first one whose body was wanted.
    var response: HTTPURLResponse?
    /// The request that the response answers, behind all redirections.
    var currentRequest: URLRequest?
    /// The first byte that the response's request asks for, if the request continues an earlier download.
    var continuedAt: Int?
    /// The error of `admit`.
    var refusal: URLError?
  }

  private let noted = Mutex(State())
  var state: State { noted.withLock { $0 } }

  init(
    of task: URLSessionTask, _ request: URLRequest, by session: URLSession,
    admitting admit: @escaping @Sendable (HTTPURLResponse) throws(URLError) -> Void
  ) {
    self.task = task
    self.request = request
    self.session = session
    self.admit = admit
  }

  var downloadLanesMax: Int { session.downloadLanesMax }

  func fetch(
    _ url: String, _ fields: FieldList, head: (Int, FieldList) -> Bool, piece: ([UInt8]) async -> Bool
  ) async throws {
    var request = request
    for field in fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
    let channel = BytesChannel(isCached: false)
    let inner = SegmentTask(of: task, session.core, request, channel)
    inner.priority = task.priority
    session.core.register(inner, session)
    try await URLSessionAsyncBytes(channel, of: inner).deliver { response throws in
      do throws(URLError) {
        try admit(response)
      } catch {
        noted.withLock { $0.refusal = error }
        throw error
      }
      let isWanted = head(response.statusCode, response.fields.list)
      if isWanted {
        noted.withLock { state in
          guard state.response == nil else { return }
          (state.response, state.currentRequest) = (response, inner.currentRequest)
          if fields.firstValue(named: "If-Range") != nil { state.continuedAt = response.firstByte }
        }
      }
      return isWanted
    } piece: {
      await piece($0)
    }
  }

  func isOfConnection(_ error: any Error) -> Bool { session.isOfConnection(error) }
}

extension HTTPURLResponse {
  /// The first byte of a part of the resource.
  fileprivate var firstByte: Int? {
    if case .part(let range) = bodyExtent { range.bytes.lowerBound } else { nil }
  }

  /// The response of which this one is the first part: a 200 with all bytes, which are put together from parts (RFC 9110
  /// 15.3.7.3).
  ///
  /// - Parameter total: The size of the whole in bytes, or `nil` if it is unknown.
  func ofWhole(_ total: Int?) -> HTTPURLResponse {
    guard statusCode == 206, let url else { return self }
    var given = fields.dictionary
    given["Content-Range"] = nil
    given["Content-Length"] = total.map { "\($0)" }
    return HTTPURLResponse(url: url, statusCode: 200, httpVersion: httpVersion, fields: .given(given), isDecoded: false)
  }
}
