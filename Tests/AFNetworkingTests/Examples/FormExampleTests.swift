import AFNetworking
import Testing

/// The examples of the page on forms.
@Suite struct FormExampleTests {
  private final class Delegate: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask,
      needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
      let form = task.originalRequest?.httpBodyStream as? any NSCopying
      completionHandler(form?.copy(with: nil) as? InputStream)
    }
  }

  private func photos() -> NSMutableURLRequest {
    let request = AFHTTPRequestSerializer().multipartFormRequest(
      withMethod: "POST", urlString: "https://example.com/upload", parameters: ["album": "summer"],
      constructingBodyWith: { form in
        try? form.appendPart(withFileURL: URL(filePath: "/photos/1.jpg"), name: "photo")
        form.appendPart(withForm: Data("by the sea".utf8), name: "title")
      }, error: nil)
    return request
  }

  @Test func upload() throws {
    let request = photos()
    #expect(request.httpMethod == "POST" && request.httpBodyStream != nil)
    let session = URLSession(configuration: .ephemeral, delegate: Delegate(), delegateQueue: nil)
    #expect(session.delegate is Delegate)
    session.invalidateAndCancel()
  }
}
