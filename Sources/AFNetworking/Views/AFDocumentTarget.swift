import Foundation
import Larkspur
import Synchronization

/// A view that shows a document, as `WKWebView` with its AFNetworking category: AFNetworking loads the document, and
/// the view shows the bytes.
///
/// The methods are called on the thread of the view. See <doc:Views>.
public protocol AFDocumentTarget: AnyObject {
  /// Shows a document, as `WKWebView` does.
  ///
  /// - Parameters:
  ///   - data: The document's bytes.
  ///   - mimeType: The type, such as `text/html`.
  ///   - characterEncodingName: The name of the text encoding, such as `utf-8`.
  ///   - baseURL: The base of the document's relative URLs.
  func load(_ data: Data, mimeType: String, characterEncodingName: String, baseURL: URL)

  /// The view's slot: a constant that the view creates with itself.
  var documentSlot: AFDocumentSlot { get }
}

/// A view's slot for a document: holds the task that loads it. The latest request wins.
public final class AFDocumentSlot: Sendable {
  private struct State: Sendable {
    var manager: AFHTTPSessionManager?
    var task: URLSessionDataTask?
  }

  private static let shared: AFHTTPSessionManager = {
    let manager = AFHTTPSessionManager(sessionConfiguration: .default)
    manager.responseSerializer = AFHTTPResponseSerializer()
    return manager
  }()

  private let state: Mutex<State>
  fileprivate let scheduler: AFViewScheduler?

  /// Creates a slot.
  ///
  /// - Parameters:
  ///   - sessionManager: The manager that loads the documents. Its serializer returns the bytes, as
  ///     ``AFHTTPResponseSerializer`` does. If `nil`, all views share one with the default configuration.
  ///   - scheduler: Calls the view; if `nil`, `AFViewScheduler.shared` does.
  public init(sessionManager: AFHTTPSessionManager? = nil, scheduler: AFViewScheduler? = nil) {
    state = Mutex(State(manager: sessionManager))
    self.scheduler = scheduler
  }

  /// The manager that loads the documents.
  public var sessionManager: AFHTTPSessionManager {
    get { state.withLock { $0.manager } ?? Self.shared }
    set { state.put(newValue, at: \.manager) }
  }

  /// Cancels the view's task. Its blocks are not called.
  public func cancel() { replace(by: nil) }

  private func replace(by task: URLSessionDataTask?) {
    let old = state.withLock { exchange(&$0.task, with: task) }
    old?.cancel()
  }

  /// Loads a document.
  ///
  /// - Parameter finish: Called on the thread of the view with the response, the bytes and the error, unless the task
  ///   has been cancelled or replaced.
  fileprivate func load(
    _ request: URLRequest, _ progress: ((Progress) -> Void)?,
    _ finish: @escaping (URLResponse, Data?, (any Error)?) -> Void
  ) {
    let (manager, scheduler) = (sessionManager, scheduler ?? .shared)
    let finish = UncheckedSendable(finish)
    let created = Mutex<URLSessionDataTask?>(nil)
    let report = progress.map { progress -> (Progress) -> Void in
      let block = UncheckedSendable(progress)
      return { [weak self] progress in
        let progress = UncheckedSendable(progress)
        scheduler.perform { [weak self] in
          guard self?.isLatest(created.withLock { $0 }) == true else { return }
          block.value(progress.value)
        }
      }
    }
    let task = manager.dataTask(with: request, uploadProgress: nil, downloadProgress: report) {
      [weak self] response, object, error in
      let data = object as? Data
      scheduler.perform { [weak self] in
        guard self?.end(created.withLock { $0 }) == true else { return }
        finish.value(response, data, error)
      }
    }
    created.withLock { $0 = task }
    // Called at once: neither the manager's completion queue nor the main queue is needed.
    manager.record(of: task)?.change { content in
      if case .handler(let completion) = content.receiver { content.receiver = .waiting(completion) }
    }
    replace(by: task)
    task.resume()
  }

  private func isLatest(_ task: URLSessionDataTask?) -> Bool {
    task != nil && state.withLock { $0.task === task }
  }

  private func end(_ task: URLSessionDataTask?) -> Bool {
    state.withLock { state in
      guard let task, state.task === task else { return false }
      state.task = nil
      return true
    }
  }
}

extension AFDocumentTarget {
  /// The manager that loads the documents.
  public var sessionManager: AFHTTPSessionManager {
    get { documentSlot.sessionManager }
    set { documentSlot.sessionManager = newValue }
  }

  /// Loads a document of text and shows it. A previous request of the view is cancelled.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - progress: Called on the thread of the view while the document arrives. In AFNetworking this parameter is a
  ///     pointer to the progress.
  ///   - success: Returns the text to show. Without this block, the received text is shown.
  ///   - failure: Receives the error: that of the task or the serializer.
  public func load(
    _ request: URLRequest, progress: ((Progress) -> Void)? = nil,
    success: ((HTTPURLResponse, String) -> String)?, failure: ((any Error) -> Void)? = nil
  ) {
    show(request, nil, nil, progress, failure) { response, data in
      guard let success else { return (data, nil) }
      let encoding = response.textEncodingName.flatMap { TextEncodingName.encoding(of: $0) } ?? .utf8
      let text = success(response, TextCoding.text(of: data, in: encoding) ?? String(decoding: data, as: UTF8.self))
      // The text may have characters that the response's encoding lacks.
      guard let bytes = TextCoding.bytes(of: text, in: encoding) else { return (Data(text.utf8), "utf-8") }
      return (bytes, nil)
    }
  }

  /// Loads a document and shows it. A previous request of the view is cancelled.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - mimeType: The type; if `nil`, that of the response, or `application/octet-stream`.
  ///   - textEncodingName: The name of the text encoding; if `nil`, that of the response, or `utf-8`.
  ///   - progress: Called on the thread of the view while the document arrives.
  ///   - success: Returns the bytes to show. Without this block, the received bytes are shown.
  ///   - failure: Receives the error: that of the task or the serializer.
  public func load(
    _ request: URLRequest, mimeType: String?, textEncodingName: String?, progress: ((Progress) -> Void)? = nil,
    success: ((HTTPURLResponse, Data) -> Data)?, failure: ((any Error) -> Void)? = nil
  ) {
    show(request, mimeType, textEncodingName, progress, failure) { response, data in
      (success.map { $0(response, data) } ?? data, nil)
    }
  }

  /// Loads a document and shows what `change` makes of it: bytes, and the name of their text encoding if it is another
  /// than the response's.
  private func show(
    _ request: URLRequest, _ mimeType: String?, _ textEncodingName: String?, _ progress: ((Progress) -> Void)?,
    _ failure: ((any Error) -> Void)?, _ change: @escaping (HTTPURLResponse, Data) -> (Data, String?)
  ) {
    documentSlot.load(request, progress) { [weak self] response, data, error in
      if let error {
        failure?(error)
        return
      }
      let data = data ?? Data()
      let (bytes, encodingName) = (response as? HTTPURLResponse).map { change($0, data) } ?? (data, nil)
      self?.load(
        bytes, mimeType: mimeType ?? response.mimeType ?? "application/octet-stream",
        characterEncodingName: encodingName ?? textEncodingName ?? response.textEncodingName ?? "utf-8",
        baseURL: response.url ?? request.url ?? URL(filePath: "/"))
    }
  }

  /// Cancels the view's task. Its blocks are not called.
  public func cancelDocumentTask() { documentSlot.cancel() }
}
