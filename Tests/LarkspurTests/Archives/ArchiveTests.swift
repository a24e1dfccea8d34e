import Foundation
import Testing

@testable import Larkspur

/// Archives and restores an object of each class that can be archived.
@Suite struct ArchiveTests {
  private func copy<T: NSObject & NSSecureCoding>(_ object: T) throws -> T {
    let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
    return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: T.self, from: data))
  }

  @Test func everyClassSaysThatItIsSafe() {
    for type: any NSSecureCoding.Type in [
      NSURLRequest.self, NSMutableURLRequest.self, URLResponse.self, HTTPURLResponse.self, URLCredential.self,
      URLProtectionSpace.self, CachedURLResponse.self,
    ] {
      let isSafe = type.supportsSecureCoding
      #expect(isSafe, "\(type)")
    }
  }

  @Test func requests() throws {
    var request = try TaskMachineTests.request("http://a.example/path?query#part")
    request.httpMethod = "PUT"
    request.httpBody = Data([0, 1, 255])
    request.setValue("1", forHTTPHeaderField: "X-One")
    request.mainDocumentURL = URL(string: "http://document.example/")
    request.timeoutInterval = .infinity
    request.cachePolicy = .returnCacheDataDontLoad
    request.networkServiceType = .avStreaming
    request.allowsCellularAccess = false
    request.allowsExpensiveNetworkAccess = false
    request.allowsConstrainedNetworkAccess = false
    request.allowsUltraConstrainedNetworkAccess = true
    request.bodyCompression = .gzip
    request.httpShouldHandleCookies = false
    request.assumesHTTP3Capable = true
    request.attribution = .user
    request.requiresDNSSECValidation = true
    request.allowsPersistentDNS = true
    request.cookiePartitionIdentifier = "partition"
    for object in [request as NSURLRequest, NSMutableURLRequest(request)] {
      let copy = try copy(object)
      #expect(type(of: copy) == type(of: object))
      let value = copy as URLRequest
      #expect(value == request)
      #expect(value.timeoutInterval == .infinity && value.networkServiceType == .avStreaming)
      #expect(value.attribution == .user && value.requiresDNSSECValidation && value.allowsPersistentDNS)
      #expect(value.allowsUltraConstrainedNetworkAccess && value.bodyCompression == .gzip)
      #expect(value.assumesHTTP3Capable && value.cookiePartitionIdentifier == "partition")
    }
  }

  @Test func aPlainRequestStaysPlain() throws {
    let request = try TaskMachineTests.request()
    let copy = try copy(request as NSURLRequest) as URLRequest
    #expect(copy == request)
    #expect(copy.attribution == .developer && copy.cookiePartitionIdentifier == nil && copy.httpBody == nil)
    #expect(copy.allHTTPHeaderFields == nil)
  }

  @Test func responses() throws {
    let response = URLResponse(
      url: try #require(URL(string: "http://a.example/file")), mimeType: "text/plain", expectedContentLength: 1 << 40,
      textEncodingName: "utf-8")
    let copy = try copy(response)
    #expect(copy == response && copy.suggestedFilename == "file.txt" && copy.expectedContentLength == 1 << 40)
  }

  @Test func responsesOverHTTP() throws {
    let fields = [
      "Content-Type": "text/html; charset=utf-8", "Content-Length": "7", "X-Own": "1",
      "Content-Disposition": "attachment; filename=\"a.html\"",
    ]
    let response = try TaskMachineTests.response(203, fields, url: "http://a.example/")
    let copy = try copy(response)
    #expect(copy == response && copy.statusCode == 203)
    #expect(copy.allHeaderFields as? [String: String] == fields)
    #expect(copy.value(forHTTPHeaderField: "x-own") == "1")
    #expect(copy.mimeType == "text/html" && copy.textEncodingName == "utf-8")
    #expect(copy.suggestedFilename == "a.html" && copy.expectedContentLength == 7)
  }

  @Test func credentials() throws {
    let credential = URLCredential(user: "user", password: "pa\u{df}", persistence: .forSession)
    let copy = try copy(credential)
    #expect(copy.user == "user" && copy.password == "pa\u{df}" && copy.persistence == .forSession)
    #expect(copy == credential)
  }

  @Test func protectionSpaces() throws {
    let spaces = [
      URLProtectionSpace(
        host: "a.example", port: 8443, protocol: "https", realm: "r\u{e4}um",
        authenticationMethod: NSURLAuthenticationMethodHTTPDigest),
      URLProtectionSpace(
        proxyHost: "proxy", port: 3128, type: NSURLProtectionSpaceHTTPProxy, realm: nil, authenticationMethod: nil),
      URLProtectionSpace(host: "a.example", port: 443, trust: nil, issuers: [Data([1, 2]), Data()]),
    ]
    for space in spaces {
      let copy = try copy(space)
      #expect(copy == space && copy.hash == space.hash && copy.isProxy() == space.isProxy())
      #expect(copy.distinguishedNames == space.distinguishedNames)
    }
    #expect(try copy(spaces[0]) != spaces[1])
  }

  @Test func cachedResponses() throws {
    let response = try TaskMachineTests.response(200, ["Content-Type": "text/plain", "Etag": "\"1\""])
    let plain = URLResponse(
      url: try #require(URL(string: "ftp://a.example/")), mimeType: nil, expectedContentLength: -1,
      textEncodingName: nil)
    for cached in [
      CachedURLResponse(response: response, data: Data("body".utf8)),
      CachedURLResponse(
        response: response, data: Data(), userInfo: ["when": Date(timeIntervalSince1970: 1), "list": [1, 2]],
        storagePolicy: .allowedInMemoryOnly),
      CachedURLResponse(response: plain, data: Data([0]), userInfo: nil, storagePolicy: .notAllowed),
    ] {
      let copy = try copy(cached)
      #expect(copy == cached && copy.storagePolicy == cached.storagePolicy)
      #expect(type(of: copy.response) == type(of: cached.response))
    }
    // A `userInfo` that cannot be archived is left out.
    let odd = CachedURLResponse(response: plain, data: Data(), userInfo: ["o": NSObject()], storagePolicy: .allowed)
    #expect(try copy(odd).userInfo == nil)
  }

  /// An archive without the expected keys, from another program or version, yields a default object or `nil`, and does
  /// not trap.
  @Test func missingKeysAreNoTrap() throws {
    let data = try NSKeyedArchiver.archivedData(withRootObject: "text" as NSString, requiringSecureCoding: true)
    func coder() throws -> NSKeyedUnarchiver {
      let coder = try NSKeyedUnarchiver(forReadingFrom: data)
      coder.requiresSecureCoding = true
      coder.decodingFailurePolicy = .setErrorAndReturn
      return coder
    }
    #expect(NSURLRequest(coder: try coder())?.httpMethod == "GET")
    #expect(NSMutableURLRequest(coder: try coder())?.url == nil)
    #expect(URLResponse(coder: try coder())?.url == nil)
    #expect(HTTPURLResponse(coder: try coder())?.allHeaderFields.isEmpty == true)
    #expect(CachedURLResponse(coder: try coder()) == nil)
    #expect(URLProtectionSpace(coder: try coder()) == nil)
  }
}
