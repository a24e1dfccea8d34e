import Foundation
import Larkspur
import Testing

@Suite struct URLRequestTests {
  private func request() throws -> URLRequest {
    URLRequest(url: try #require(URL(string: "http://example.org/path?query#fragment")))
  }

  @Test func aNewRequestIsAGetThatHandlesCookies() throws {
    let request = try request()
    #expect(request.httpMethod == "GET")
    #expect(request.httpShouldHandleCookies)
    #expect(request.timeoutInterval == 60)
    #expect(request.allHTTPHeaderFields == nil)
    #expect(request.cachePolicy == .useProtocolCachePolicy)
    #expect("\(request)" == "http://example.org/path?query#fragment")
  }

  private final class Subclass: NSMutableURLRequest {}

  private final class Overriding: NSMutableURLRequest {
    override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
      super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
    }

    required init?(coder: NSCoder) { super.init(coder: coder) }
  }

  @Test func subclassesInheritTheInitialisers() throws {
    let url = try #require(URL(string: "http://a.example/"))
    #expect(Subclass(url: url).url == url)
    #expect(Overriding(url: url).url == url && Overriding().url == nil)
  }

  @Test func aRelativeURLIsResolved() throws {
    let url = try #require(URL(string: "q", relativeTo: URL(string: "http://h/c/")))
    let whole = try #require(URL(string: "http://h/c/q"))
    let request = URLRequest(url: url)
    #expect(request.url == whole && request.url?.baseURL == nil && "\(request)" == "http://h/c/q")
    #expect(request == URLRequest(url: whole) && request.hashValue == URLRequest(url: whole).hashValue)
    #expect(NSURLRequest(url: url).url == whole)
  }

  /// A field value with a control character, such as a line break, is refused, even if it would fold the line. The old
  /// value stays.
  @Test(arguments: ["a\r\nInj: 1", "a\nb", "a\rb", "a\0b", "\r\na", "a\r\n", "a\n b"])
  func valuesThatCannotBe(value: String) throws {
    var request = try request()
    request.setValue("old", forHTTPHeaderField: "X-Old")
    request.setValue(value, forHTTPHeaderField: "X-Old")
    request.addValue(value, forHTTPHeaderField: "X-Old")
    request.setValue(value, forHTTPHeaderField: "X-New")
    request.addValue(value, forHTTPHeaderField: "X-New")
    #expect(request.allHTTPHeaderFields == ["X-Old": "old"])
  }

  @Test(arguments: ["a\r\n b", "a\r\n\tb"]) func valuesThatAreFolded(value: String) throws {
    var request = try request()
    request.setValue(value, forHTTPHeaderField: "X-Old")
    #expect(request.value(forHTTPHeaderField: "x-old") == value)
  }

  @Test func namesAreCaseless() throws {
    var (one, other) = (try request(), try request())
    one.setValue("a", forHTTPHeaderField: "B")
    other.allHTTPHeaderFields = ["b": "a"]
    #expect(one == other && one.hashValue == other.hashValue)
  }

  @Test func anObjectMayGetItsURLLater() {
    let request = NSMutableURLRequest()
    #expect(request.url == nil)
    #expect(request.httpMethod == "GET")
    #expect(NSURLRequest() == request)
    request.url = URL(string: "http://example.org/")
    #expect((request as URLRequest).url?.host == "example.org")
  }

  @Test func copiesDoNotShareChanges() throws {
    let request = try request()
    var copy = request
    copy.httpMethod = "POST"
    copy.setValue("1", forHTTPHeaderField: "a")
    #expect(request.httpMethod == "GET")
    #expect(request.value(forHTTPHeaderField: "A") == nil)
    #expect(copy != request)
  }

  @Test func noFieldsAreEqual() throws {
    let request = try request()
    var other = request
    other.allHTTPHeaderFields = [:]
    #expect(other == request && other.hashValue == request.hashValue)
    other.setValue("1", forHTTPHeaderField: "a")
    #expect(other != request)
    other.setValue(nil, forHTTPHeaderField: "a")
    #expect(other == request && other.hashValue == request.hashValue)
  }

  @Test func fieldsAreOneWhateverTheCaseOfTheirNames() throws {
    var request = try request()
    request.setValue("1", forHTTPHeaderField: "foo-bar")
    request.setValue("2", forHTTPHeaderField: "FOO-BAR")
    request.addValue("3", forHTTPHeaderField: "foo-bAR")
    #expect(request.allHTTPHeaderFields == ["Foo-Bar": "2,3"])
    #expect(request.value(forHTTPHeaderField: "fOO-bar") == "2,3")
    request.setValue(nil, forHTTPHeaderField: "Foo-bar")
    #expect(request.allHTTPHeaderFields == [:])
  }

  @Test func commonMethodsAreInCapitals() throws {
    var request = try request()
    request.httpMethod = "get"
    #expect(request.httpMethod == "GET")
    // RFC 9110 9.1: these methods are case-sensitive and stay as they are.
    for method in ["purge", "options", "Trace", "patch"] {
      request.httpMethod = method
      #expect(request.httpMethod == method)
    }
    request.httpMethod = nil
    #expect(request.httpMethod == "GET")
  }

  /// Requests that differ in one of these properties are unequal, and their hashes differ.
  @Test func whatMakesRequestsUnequal() throws {
    let plain = try request()
    let stream = InputStream(data: Data([1]))
    let changes: [(inout URLRequest) -> Void] = [
      { $0.url = URL(string: "http://other.example/") }, { $0.mainDocumentURL = URL(string: "http://main.example/") },
      { $0.httpMethod = "POST" }, { $0.cachePolicy = .returnCacheDataElseLoad }, { $0.allowsCellularAccess = false },
      { $0.httpShouldHandleCookies = false }, { $0.setValue("1", forHTTPHeaderField: "a") },
      { $0.httpBody = Data() }, { $0.httpBody = Data([1]) },
      { $0.httpBodyStream = stream },
    ]
    let requests = changes.map { change in
      var request = plain
      change(&request)
      return request
    }
    for (index, request) in requests.enumerated() {
      var same = plain
      changes[index](&same)
      #expect(request == same && request.hashValue == same.hashValue)
      #expect((request as NSURLRequest).isEqual(same as NSURLRequest))
      #expect((request as NSURLRequest).hash == (same as NSURLRequest).hash)
    }
    #expect(Set(requests + [plain]).count == changes.count + 1)
    #expect(Set((requests + [plain]).map(\.hashValue)).count == changes.count + 1)
    // Properties that only describe how a request is loaded do not affect equality.
    var other = plain
    other.timeoutInterval = 5
    other.networkServiceType = .video
    other.httpShouldUsePipelining = true
    #expect(other == plain && other.hashValue == plain.hashValue)
  }

  @Test func aBodyIsDataOrAStream() throws {
    var request = try request()
    request.httpBody = Data([1])
    request.httpBodyStream = InputStream(data: Data([2]))
    #expect(request.httpBody == nil)
    request.httpBody = Data([3])
    #expect(request.httpBodyStream == nil)
  }

  @Test func objectsAndValuesBridge() throws {
    var request = try request()
    request.httpMethod = "PUT"
    let object = request as NSURLRequest
    (object as? NSMutableURLRequest)?.httpMethod = "HEAD"
    #expect(object.httpMethod == "HEAD" && request.httpMethod != "HEAD", "it is a mutable one of its own, as on Darwin")
    (object as? NSMutableURLRequest)?.httpMethod = request.httpMethod
    #expect(object.httpMethod == "PUT")
    let mutable = try #require(object.mutableCopy() as? NSMutableURLRequest)
    mutable.httpMethod = "PATCH"
    mutable.setValue("x", forHTTPHeaderField: "y")
    #expect((mutable as URLRequest).httpMethod == "PATCH")
    #expect(object.httpMethod == "PUT")
    #expect((mutable.copy() as? NSURLRequest) == mutable)
  }

  @Test func anArchivedRequestIsTheSame() throws {
    var request = try request()
    request.httpMethod = "POST"
    request.httpBody = Data("body".utf8)
    request.timeoutInterval = 2.5
    request.cachePolicy = .returnCacheDataElseLoad
    request.setValue("text/plain", forHTTPHeaderField: "Content-Type")
    let data = try NSKeyedArchiver.archivedData(withRootObject: request as NSURLRequest, requiringSecureCoding: true)
    let object = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data)
    let copy = try #require(object)
    #expect(copy as URLRequest == request)
    #expect(copy.timeoutInterval == 2.5)
  }
}

extension URLRequestTests {
  /// Foundation's collections compare requests by value, as with FoundationNetworking.
  @Test func itIsAnElementOfFoundationsCollections() throws {
    let request = URLRequest(url: try #require(URL(string: "http://example.com/")))
    let array = NSArray(array: [request])
    #expect(array.contains(request) && array.index(of: request) == 0 && array[0] is URLRequest)
    let mutable = NSMutableArray(array: [request])
    mutable.remove(request)
    #expect(mutable.count == 0)
    #expect(NSOrderedSet(object: request).index(of: request) == 0)
  }
}
