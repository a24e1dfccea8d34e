import Dispatch
import Foundation
import Larkspur
import Synchronization

/// What becomes of a task that is over: its bytes are serialized on a concurrent queue, its handler is called on the
/// completion queue, and the notification is posted on the main thread.
///
/// ```
///   session's queue --failed--------------------------> completion queue: handler -> main queue: notification
///        '--succeeded--> processing queue: serializer ------'
/// ```
///
/// A task that nobody has to be told of on the session's queue ends on its loop's thread. A short document is read there:
/// the way to the processing queue would take longer.
extension AFURLSessionManager {
  private static let processing = DispatchQueue(
    label: "com.alamofire.networking.session.manager.processing", attributes: .concurrent)

  /// So long a JSON document may be to be read on the loop's thread. Attack: documents that take long to read, while other
  /// tasks wait.
  static let bytesReadAtOnceMax = 2048

  /// Whether to read so many bytes takes less than to go to another thread. Of a program's own serializer nobody knows it.
  static func isReadAtOnce(_ serializer: any AFURLResponseSerialization, bytes: Int) -> Bool {
    let kind = type(of: serializer)
    return kind == AFHTTPResponseSerializer.self || kind == AFJSONResponseSerializer.self && bytes <= bytesReadAtOnceMax
  }

  /// A task's end, and what has been made of it. Each step is alone with it.
  private final class Ending: @unchecked Sendable {
    let task: URLSessionTask
    private(set) var content: TaskRecord.Content
    let serializer: any AFURLResponseSerialization
    var object: Any?
    var error: (any Error)?

    init(_ record: TaskRecord, _ serializer: any AFURLResponseSerialization, _ error: (any Error)?) {
      task = record.task
      content = record.take()
      self.serializer = serializer
      self.error = content.failure ?? error
    }

    func serialize() {
      let data = task is URLSessionDownloadTask ? nil : content.data
      let problem = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
      object = serializer.responseObject(for: task.response, data: data, error: problem)
      // There may be both: a document that came with status 404.
      error = problem.pointee
      if let file = content.file { object = file }
    }

    /// And everybody else after it. What the receiver holds goes when it has been told, and not with the notification.
    func tellReceiver() {
      switch exchange(&content.receiver, with: .nobody) {
      case .nobody: break
      case .handler(let receive), .waiting(let receive): receive(task.someResponse, object, error)
      }
      NotificationOutbox.main.post(.AFNetworkingTaskDidComplete, task, keeping: content.data.count) { self.userInfo }
    }

    private var userInfo: [AnyHashable: Any] {
      if error == nil, let metrics = content.metrics, let object, !(task is URLSessionDownloadTask) {
        return SuccessInfo.shared.filled(serializer, metrics, content.data, object)
      }
      var info: [AnyHashable: Any] = [AFNetworkingTaskDidCompleteResponseSerializerKey: serializer]
      info[AFNetworkingTaskDidCompleteSessionTaskMetrics] = content.metrics
      if let file = content.file {
        info[AFNetworkingTaskDidCompleteAssetPathKey] = file
      } else if !(task is URLSessionDownloadTask) {
        info[AFNetworkingTaskDidCompleteResponseDataKey] = content.data
      }
      if let object { info[AFNetworkingTaskDidCompleteSerializedResponseKey] = object }
      if let error { info[AFNetworkingTaskDidCompleteErrorKey] = error as NSError }
      return info
    }
  }

  func finish(_ record: TaskRecord, _ error: (any Error)?) {
    if error == nil { record.ended() }
    let ending = Ending(record, state.withLock { $0.responseSerializer }, error)
    guard ending.error == nil else { return deliver(ending) }
    if !ending.content.isWatched, !hearsEverything, !blocks.wants(.endOnQueue),
      Self.isReadAtOnce(ending.serializer, bytes: ending.content.data.count)
    {
      ending.serialize()
      return deliver(ending)
    }
    Self.processing.async { [self] in
      ending.serialize()
      deliver(ending)
    }
  }

  private func deliver(_ ending: Ending) {
    if case .waiting = ending.content.receiver { return ending.tellReceiver() }
    let (queue, group) = state.withLock { ($0.completesOnMain ? nil : $0.completionQueue, $0.completionGroup) }
    if let queue {
      queue.async(group: group) { ending.tellReceiver() }
    } else {
      DispatchQueue.main.async(group: group) { NotificationOutbox.main.within { ending.tellReceiver() } }
    }
  }

  // MARK: - Downloads

  /// Moves a download's file to where a block says: the manager's, or else the task's.
  func place(_ task: URLSessionDownloadTask, of session: URLSession, from location: URL) {
    let record = record(of: task)
    var place = blocks.current.set.downloadTaskDidFinishDownloading?(session, task, location)
    if place == nil, let destination = record?.destination {
      place = destination(location, task.someResponse)
    }
    guard let place else { return }
    do {
      try FileManager.default.moveItem(at: location, to: place)
      record?.change { $0.file = place }
      NotificationCenter.default.post(name: .AFURLSessionDownloadTaskDidMoveFileSuccessfully, object: task)
    } catch {
      // AFNetworking tells its handler of no error, and of a file that is not there.
      let error = error as NSError
      record?.fail(error)
      var info: [AnyHashable: Any] = error.userInfo
      info[NSUnderlyingErrorKey] = error
      NotificationCenter.default.post(
        name: .AFURLSessionDownloadTaskDidFailToMoveFile, object: task, userInfo: info)
    }
  }
}

/// The user info of a request that went well, which most do. A copy of it has the same keys in the same places: they
/// are hashed once.
private struct SuccessInfo: @unchecked Sendable {
  private typealias Place = Dictionary<AnyHashable, Any>.Index

  static let shared = SuccessInfo()

  private let blank: [AnyHashable: Any]
  private let serializer: Place
  private let metrics: Place
  private let data: Place
  private let object: Place

  private init() {
    let keys = [
      AFNetworkingTaskDidCompleteResponseSerializerKey, AFNetworkingTaskDidCompleteSessionTaskMetrics,
      AFNetworkingTaskDidCompleteResponseDataKey, AFNetworkingTaskDidCompleteSerializedResponseKey,
    ]
    let blank = Dictionary(uniqueKeysWithValues: keys.map { (AnyHashable($0), 0 as Any) })
    func place(_ key: String) -> Place { blank.index(forKey: key) ?? blank.startIndex }
    self.blank = blank
    serializer = place(keys[0])
    metrics = place(keys[1])
    data = place(keys[2])
    object = place(keys[3])
  }

  func filled(
    _ serializer: any AFURLResponseSerialization, _ metrics: URLSessionTaskMetrics, _ data: Data, _ object: Any
  ) -> [AnyHashable: Any] {
    var info = blank
    info.values[self.serializer] = serializer
    info.values[self.metrics] = metrics
    info.values[self.data] = data
    info.values[self.object] = object
    return info
  }
}

extension URLSessionTask {
  /// The response. Without one there is one that says nothing: a block's parameter is not optional, as it is none for
  /// Apple's importer.
  var someResponse: URLResponse {
    response
      ?? URLResponse(
        url: originalRequest?.url ?? URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: -1,
        textEncodingName: nil)
  }
}

extension TaskRecord {
  var destination: Destination? {
    var chosen = Carried<Destination?>(nil)
    change { chosen = Carried($0.destination) }
    return chosen.value
  }
}
