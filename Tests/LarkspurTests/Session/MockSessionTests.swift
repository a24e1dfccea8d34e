import Foundation
import Larkspur
import Synchronization
import Testing

/// Programs' tests put subclasses of their own in place of a session and its tasks.
@Suite struct MockSessionTests {
  private final class MockTask: URLSessionDataTask, @unchecked Sendable {
    private let whenResumed: @Sendable () -> Void

    init(whenResumed: @escaping @Sendable () -> Void) { self.whenResumed = whenResumed }

    override func resume() { whenResumed() }
  }

  private final class MockSession: URLSession, @unchecked Sendable {
    private let data: Data
    private let response: URLResponse

    init(data: Data, response: URLResponse) {
      self.data = data
      self.response = response
      super.init()
    }

    override func dataTask(
      with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
      MockTask { [data, response] in completionHandler(data, response, nil) }
    }
  }

  @Test func aSubclassAnswersAtOnce() throws {
    let session: URLSession = MockSession(data: Data("mocked".utf8), response: URLResponse())
    let got = Mutex<(Data?, URLResponse?)>((nil, nil))
    let request = URLRequest(url: try #require(URL(string: "https://nowhere.invalid/")))
    let task = session.dataTask(with: request) { data, response, _ in got.withLock { $0 = (data, response) } }
    task.resume()
    let (data, response) = got.withLock { $0 }
    #expect(data == Data("mocked".utf8))
    #expect(response != nil)
    #expect(session.configuration.timeoutIntervalForRequest == 60)
    #expect(session.delegate == nil)
  }

  @Test func aResponseOfNobodys() throws {
    let response = URLResponse()
    #expect(response.url == nil)
    #expect(response.mimeType == nil)
    #expect(response.textEncodingName == nil)
    #expect(response.expectedContentLength == -1)
    #expect(response.suggestedFilename == "Unknown")
    #expect(response.isEqual(response.copy()))
    let archive = try NSKeyedArchiver.archivedData(withRootObject: response, requiringSecureCoding: true)
    let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLResponse.self, from: archive)
    #expect(read?.url == nil)
    #expect(read == response)
  }
}
