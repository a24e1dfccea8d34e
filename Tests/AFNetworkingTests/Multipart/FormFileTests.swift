import AFNetworking
import Dispatch
import Foundation
import Larkspur
import Testing

/// Tests multipart forms that are written to files.
@Suite struct FormFileTests {
  let serializer = AFHTTPRequestSerializer()
  let directory: FormDirectory

  init() throws { directory = try FormDirectory() }

  private func form(_ block: @escaping (any AFMultipartFormData) -> Void) throws -> URLRequest {
    try serializer.form(block) as URLRequest
  }

  /// Writes a form to a file.
  ///
  /// - Returns: The request without its stream, and the error that the completion handler got.
  private func write(_ request: URLRequest, to url: URL) async -> (URLRequest, error: NSError?) {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    let (results, result) = AsyncStream<NSError?>.makeStream()
    let rest = serializer.request(withMultipartForm: request, writingStreamContentsToFile: url) { error in
      #expect(DispatchQueue.getSpecific(key: key) == true)
      result.yield(error as NSError?)
    }
    var iterator = results.makeAsyncIterator()
    return (rest as URLRequest, await iterator.next() ?? nil)
  }

  @Test func theHandlerHearsOfTheFile() async throws {
    let request = try form { $0.appendPart(withForm: Data("value".utf8), name: "field") }
    let url = try directory.file(
      "form",
      Array("what was there before, and is longer than the form that comes".utf8) + [UInt8](repeating: 0, count: 1_000))
    let (rest, error) = await write(request, to: url)
    #expect(error == nil)
    #expect(rest.httpBodyStream == nil)
    #expect(rest.value(forHTTPHeaderField: "Content-Length") == request.value(forHTTPHeaderField: "Content-Length"))
    let bytes = try Data(contentsOf: url)
    let type = rest.value(forHTTPHeaderField: "Content-Type")
    #expect(try ReadForm(Array(bytes), contentType: type).parts.map(\.body) == [Array("value".utf8)])
    #expect(rest.value(forHTTPHeaderField: "Content-Length") == "\(bytes.count)")
  }

  @Test func anyBodyStreamIsWritten() async throws {
    var request = URLRequest(url: try #require(URL(string: "http://a")))
    let bytes = [UInt8](repeating: 7, count: 200_000)
    request.httpBodyStream = InputStream(data: Data(bytes))
    let url = directory.url.appending(path: "body")
    #expect(await write(request, to: url).error == nil)
    #expect(try Data(contentsOf: url) == Data(bytes))
    request.httpBodyStream = SlowStream([1, 2, 3, 4, 5, 6, 7, 8, 9])
    #expect(await write(request, to: url).error == nil)
    #expect(try Data(contentsOf: url) == Data([1, 2, 3, 4, 5, 6, 7, 8, 9]))
  }

  @Test func whatCannotBeWrittenIsAnError() async throws {
    let request = try form { $0.appendPart(withForm: Data("value".utf8), name: "field") }
    #expect(await write(request, to: directory.url.appending(path: "missing/form")).error != nil)
    let elsewhere = try #require(URL(string: "http://example.com/form"))
    let error = await write(request, to: elsewhere).error
    #expect(error?.domain == AFURLRequestSerializationErrorDomain)
    let bare = URLRequest(url: elsewhere)
    #expect(
      await write(bare, to: directory.url.appending(path: "form")).error?.domain == AFURLRequestSerializationErrorDomain
    )
    #expect(!FileManager.default.fileExists(atPath: directory.url.appending(path: "form").path))
  }

  @Test func halfAFormIsNoFile() async throws {
    let request = try form {
      $0.appendPart(with: InputStream(data: Data([1])), name: "s", fileName: "s", length: 2, mimeType: "a/b")
    }
    let url = directory.url.appending(path: "form")
    let error = await #expect(throws: NSError.self) {
      _ = try await serializer.request(withMultipartForm: request, writingStreamContentsToFile: url)
    }
    #expect(error?.code == URLError.Code.requestBodyStreamExhausted.rawValue)
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }
}
