import Foundation
import Larkspur
import Synchronization
import Testing

/// Programs can subclass sessions, tasks, requests and responses for their tests.
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

  /// A subclass of the immutable request that overrides the getter of `httpMethod`.
  private final class Immutable: NSURLRequest {
    override var httpMethod: String? { "ZAP" }
  }

  @Test func requestsOfAnotherMethod() throws {
    #expect(Immutable(url: try #require(URL(string: "http://a.example/"))).httpMethod == "ZAP")
  }

  @Test(.timeLimit(.minutes(1))) func programsProtocols() async throws {
    let session: any Loading = URLSession(configuration: .ephemeral)
    let url = try #require(URL(string: "data:,hello"))
    #expect(try await session.data(for: URLRequest(url: url)).0 == Data("hello".utf8))
    #expect(try await session.data(from: url).0 == Data("hello".utf8))
    let load: (URL) async throws -> (Data, URLResponse) = URLSession.shared.data(from:)
    #expect(try await load(url).0 == Data("hello".utf8))
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

  @Test func aResponseWithoutURL() throws {
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

  /// A response whose status and fields a test can set.
  private final class MockResponse: HTTPURLResponse, @unchecked Sendable {
    private let mockStatus = Mutex(0)
    private let mockFields = Mutex<[String: String]>([:])

    override var statusCode: Int {
      get { mockStatus.withLock { $0 } }
      set { mockStatus.withLock { $0 = newValue } }
    }

    override var allHeaderFields: [AnyHashable: Any] {
      get { mockFields.withLock { $0 } }
      set { mockFields.withLock { $0 = newValue as? [String: String] ?? [:] } }
    }
  }

  @Test func aSubclassOfAResponseSaysItsStatus() throws {
    let url = try #require(URL(string: "https://nowhere.invalid/"))
    let mock = MockResponse(url: url, mimeType: "text/plain", expectedContentLength: 3, textEncodingName: "utf-8")
    mock.statusCode = 418
    mock.allHeaderFields = ["X-Mock": "1"]
    let response: HTTPURLResponse = mock
    #expect(response.statusCode == 418)
    #expect(response.allHeaderFields as? [String: String] == ["X-Mock": "1"])
    #expect(response.url == url)
    #expect(response.mimeType == "text/plain")
    #expect(response.expectedContentLength == 3)
    #expect(response.textEncodingName == "utf-8")
  }

  @Test func anHTTPResponseWithoutURLIsGood() {
    let response = HTTPURLResponse()
    #expect(response.statusCode == 200)
    #expect(response.url == nil)
    #expect(response.allHeaderFields.isEmpty)
    #expect(response.expectedContentLength == -1)
  }

  private final class MockTransaction: URLSessionTaskTransactionMetrics, @unchecked Sendable {
    private let url: URL?

    init(url: URL?) { self.url = url }

    override var response: URLResponse? {
      url.map { URLResponse(url: $0, mimeType: nil, expectedContentLength: 0, textEncodingName: nil) }
    }
    override var isReusedConnection: Bool { true }
    override var fetchStartDate: Date? { .distantPast }
  }

  private final class MockMetrics: URLSessionTaskMetrics, @unchecked Sendable {
    private let interval: DateInterval

    init(interval: DateInterval) { self.interval = interval }

    override var taskInterval: DateInterval { interval }
    override var redirectCount: Int { 7 }
    override var transactionMetrics: [URLSessionTaskTransactionMetrics] { [MockTransaction(url: URL(string: "a:b"))] }
  }

  @Test func subclassesOfMetricsSayTheirNumbers() throws {
    let metrics: URLSessionTaskMetrics = MockMetrics(interval: DateInterval(start: .distantPast, duration: 5))
    #expect(metrics.taskInterval.duration == 5)
    #expect(metrics.redirectCount == 7)
    let transaction = try #require(metrics.transactionMetrics.first)
    #expect(transaction.response?.url?.scheme == "a")
    #expect(transaction.isReusedConnection)
    #expect(transaction.fetchStartDate == .distantPast)
    #expect(transaction.request.url == nil)
    #expect(transaction.resourceFetchType == .unknown)
    #expect(URLSessionTaskMetrics().transactionMetrics.isEmpty)
  }
}

/// A program's own protocol for loading, with the signatures that Darwin documents.
private protocol Loading: Sendable {
  func data(for request: URLRequest) async throws -> (Data, URLResponse)
  func data(from url: URL) async throws -> (Data, URLResponse)
  func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse)
  func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse)
}

extension URLSession: Loading {}
