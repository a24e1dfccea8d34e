import AFNetworking
import Testing

/// The examples of the catalogue's page about forms.
@Suite struct FormExampleTests {
  @Test func aFormWithAFile() {
    let request = AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "https://example.com/upload", parameters: ["album": "summer"],
      constructingBodyWith: { form in
        try? form.appendPart(withFileURL: URL(filePath: "/photos/1.jpg"), name: "photo")
        form.appendPart(withForm: Data("by the sea".utf8), name: "title")
      }, error: nil)
    #expect(request.httpBodyStream != nil)
  }

  private final class Delegate: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      let form = task.originalRequest?.httpBodyStream as? any NSCopying
      completionHandler(form?.copy(with: nil) as? InputStream)
    }
  }

  @Test func aDelegateGivesTheFormAgain() async throws {
    let request = try AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "http://example.com", parameters: ["album": "summer"], constructingBodyWith: nil)
    let session = URLSession(configuration: .ephemeral)
    let task = session.uploadTask(withStreamedRequest: request as URLRequest)
    let streams = await withCheckedContinuation { continuation in
      Delegate().urlSession(session, task: task) { continuation.resume(returning: $0 is any NSCopying) }
    }
    #expect(streams)
    session.invalidateAndCancel()
  }
}
