import Foundation
import LarkspurHTTP
import Synchronization

/// A data task that sends a body.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
  let pointHandler = Mutex<(@Sendable (UploadResumeData?) -> Void)?>(nil)
  /// Whether the delegate is being asked for its agreement to an upload resource of another origin.
  let isAskedForResource = Atomic(false)

  override func prepare(_ load: Load) throws(URLError) {
    if case .file(let url) = source {
      load.resumable = ResumableUpload(of: self, load.request, file: url, load.core)
    }
  }

  /// Cancels the upload so that it can continue later, with ``URLSession/uploadTask(withResumeData:)``.
  ///
  /// An upload can continue if it sends a file, and the server supports resumable uploads
  /// (`draft-ietf-httpbis-resumable-upload`) and has said so: see <doc:Resuming>. The server keeps the bytes that it has
  /// received. The resume data holds the fields of the request, including `Authorization`, and the path of the file:
  /// guard it as well as the request.
  ///
  /// - Parameter completionHandler: Called once, with the resume data, or with `nil` if the upload cannot continue, as
  ///   Apple documents it for servers without the draft. Called on the delegate queue, before the task's last call
  ///   unless the task is complete already. A task that belongs to no session calls it at once.
  open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
    cancel(thenCalling: ResumeDataHandler(completionHandler))
  }

  /// See ``cancel(byProducingResumeData:)``.
  public final func cancelByProducingResumeData() async -> Data? {
    await withCheckedContinuation { continuation in
      cancel(byProducingResumeData: { continuation.resume(returning: $0) })
    }
  }
}

/// An upload that continues an earlier upload.
final class ResumedUploadTask: URLSessionUploadTask, @unchecked Sendable {
  let resumeData: Result<UploadResumeData, ResumeData.Refusal>

  init(_ core: SessionCore, _ data: UploadResumeData, output: TaskOutput) {
    let request = data.request
    resumeData = request == nil ? .failure(.unreadable) : .success(data)
    super.init(core, request: request, source: .file(URL(fileURLWithPath: data.path)), output: output)
  }

  private init(_ core: SessionCore, refused refusal: ResumeData.Refusal, output: TaskOutput) {
    resumeData = .failure(refusal)
    super.init(core, request: nil, output: output)
  }

  static func make(_ core: SessionCore, _ data: Data, output: TaskOutput) -> ResumedUploadTask {
    do throws(ResumeData.Refusal) {
      return ResumedUploadTask(core, try SignedUploadData.decode(data), output: output)
    } catch {
      return ResumedUploadTask(core, refused: error, output: output)
    }
  }

  override func prepare(_ load: Load) throws(URLError) {
    switch resumeData {
    case .success(let data): load.resumable = ResumableUpload(of: self, load.request, from: data, load.core)
    case .failure(let refusal): throw URLError(refusal)
    }
  }
}
