import Dispatch
import Foundation
import Larkspur
import Synchronization

/// The end of a task: its bytes are serialized on a concurrent queue, its handler is called on the completion queue,
/// and the notification is posted on the main thread.
///
/// ```
///   session's queue --failed--------------------------> completion queue: handler -> main queue: notification
///        '--succeeded--> processing queue: serializer ------'
/// ```
extension AFURLSessionManager {
  private static let processing = DispatchQueue(
    label: "com.alamofire.networking.session.manager.processing", attributes: .concurrent)

  /// The result of a task. Only one step uses it at a time.
  private final class TaskResult: @unchecked Sendable {
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
      // Object and error do not exclude each other: a document may come with status 404.
      error = problem.pointee
      if let file = content.file { object = file }
    }

    /// Calls the receiver, and then posts the notification. Releases the receiver after its call, and not only after
    /// the notification.
    func callReceiver() {
      switch exchange(&content.receiver, with: .absent) {
      case .absent: break
      case .handler(let receive), .waiting(let receive): receive(task.someResponse, object, error)
      }
      NotificationOutbox.main.post(.AFNetworkingTaskDidComplete, task, keeping: content.data.count) { self.userInfo }
    }

    /// The parts of the user info of a serialized response, which most tasks have. Performance: `mapValues` keeps the
    /// positions of the keys, so they are hashed once for all tasks.
    private static let usualParts = UncheckedSendable<[AnyHashable: (TaskResult) -> Any?]>([
      AFNetworkingTaskDidCompleteResponseSerializerKey: { $0.serializer },
      AFNetworkingTaskDidCompleteSessionTaskMetrics: { $0.content.metrics },
      AFNetworkingTaskDidCompleteResponseDataKey: { $0.content.data },
      AFNetworkingTaskDidCompleteSerializedResponseKey: { $0.object },
    ])

    private var userInfo: [AnyHashable: Any] {
      if error == nil, content.metrics != nil, object != nil, !(task is URLSessionDownloadTask) {
        return Self.usualParts.value.mapValues { $0(self) ?? NSNull() }
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
    let result = TaskResult(record, state.withLock { $0.responseSerializer }, error)
    guard result.error == nil else { return deliver(result) }
    Self.processing.async { [self] in
      result.serialize()
      deliver(result)
    }
  }

  private func deliver(_ result: TaskResult) {
    if case .waiting = result.content.receiver { return result.callReceiver() }
    let (queue, group) = state.withLock { ($0.completesOnMain ? nil : $0.completionQueue, $0.completionGroup) }
    if let queue {
      queue.async(group: group) { result.callReceiver() }
    } else {
      DispatchQueue.main.async(group: group) { NotificationOutbox.main.batching { result.callReceiver() } }
    }
  }

  // MARK: - Downloads

  /// Moves a download's file to the location that the manager's block returns, or else the task's destination.
  func moveDownload(_ task: URLSessionDownloadTask, of session: URLSession, from location: URL) {
    let record = record(of: task)
    let block = blocks.current.set.downloadTaskDidFinishDownloading
    if block == nil, record?.hasFileReceiver != true { return task.leaveFile() }
    var target = block?(session, task, location)
    if target == nil, let destination = record?.destination {
      target = destination(location, task.someResponse)
    }
    guard let target else { return }
    do {
      try FileManager.default.moveItem(at: location, to: target)
      record?.change { $0.file = target }
      NotificationCenter.default.post(name: .AFURLSessionDownloadTaskDidMoveFileSuccessfully, object: task)
    } catch {
      // AFNetworking reports no error here, and passes a path without a file to its handler.
      let error = error as NSError
      record?.fail(error)
      var info: [AnyHashable: Any] = error.userInfo
      info[NSUnderlyingErrorKey] = error
      NotificationCenter.default.post(
        name: .AFURLSessionDownloadTaskDidFailToMoveFile, object: task, userInfo: info)
    }
  }
}

extension URLSessionTask {
  /// The response, or an empty one if there is none: a block's parameter is not optional, because Apple's importer does
  /// not make it optional.
  var someResponse: URLResponse {
    response
      ?? URLResponse(
        url: originalRequest?.url ?? URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: -1,
        textEncodingName: nil)
  }
}
