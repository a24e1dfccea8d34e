import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Archives may come from any source. Whatever they contain, the decoded objects keep the guarantees of their classes.
@Suite struct UntrustedArchiveTests {
  /// Writes a wrong value for one key.
  typealias Writer = @Sendable (NSKeyedArchiver, String) -> Void

  static let wrong: [Writer] = [
    { _, _ in }, { $0.encode("text" as NSString, forKey: $1) }, { $0.encode("a\r\nb: c\0" as NSString, forKey: $1) },
    { $0.encode(NSNumber(value: 7), forKey: $1) }, { $0.encode(NSArray(array: ["a", 1]), forKey: $1) },
    { $0.encode(NSDictionary(dictionary: ["a\r\nb": "c\r\nd", "e": 1]), forKey: $1) },
    { $0.encode(NSDictionary(dictionary: ["a b": "c", "d": "e\nf", "x-y": "z"]), forKey: $1) },
    { $0.encode(NSData(data: Data([0, 255])), forKey: $1) }, { $0.encode(NSDate(), forKey: $1) },
    { $0.encode(NSURL(fileURLWithPath: "/etc/passwd"), forKey: $1) }, { $0.encode(NSNull(), forKey: $1) },
    { $0.encode(NSUUID(), forKey: $1) }, { $0.encode(NSSet(array: ["a"]), forKey: $1) },
  ]

  static let wrongNumbers: [Writer] = [
    { _, _ in }, { $0.encode(Int64.min, forKey: $1) }, { $0.encode(Int64.max, forKey: $1) },
    { $0.encode(Int64(-2), forKey: $1) }, { $0.encode(Int64(1000), forKey: $1) }, { $0.encode(Double.nan, forKey: $1) },
    { $0.encode(-Double.infinity, forKey: $1) }, { $0.encode(1e300, forKey: $1) }, { $0.encode(true, forKey: $1) },
    { $0.encode("text" as NSString, forKey: $1) },
  ]

  static func decoder(_ write: (NSKeyedArchiver) -> Void) throws -> NSKeyedUnarchiver {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    write(archiver)
    archiver.finishEncoding()
    let decoder = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    // `unarchivedObject(ofClass:from:)` uses this policy, too.
    decoder.decodingFailurePolicy = .setErrorAndReturn
    return decoder
  }

  /// Decodes archives that are right except for one key.
  ///
  /// - Returns: The objects that could be decoded, with the wrong key of each.
  private func objects<T: NSObject & NSCoding>(
    _ type: T.Type, objects keys: [String], numbers: [String],
    _ good: (NSKeyedArchiver, _ isWritten: (String) -> Bool) -> Void
  ) throws -> [(key: String, object: T)] {
    var found: [(key: String, object: T)] = []
    for (keys, writers) in [(keys, Self.wrong), (numbers, Self.wrongNumbers)] {
      for key in keys {
        for write in writers {
          let decoder = try Self.decoder { archiver in
            good(archiver) { $0 != key }
            write(archiver, key)
          }
          if let object = type.init(coder: decoder) { found.append((key, object)) }
        }
      }
    }
    return found
  }

  private func write(_ archiver: NSKeyedArchiver, _ isWritten: (String) -> Bool, _ values: [(String, Any)]) {
    for (key, value) in values where isWritten(key) {
      switch value {
      case let number as Int64: archiver.encode(number, forKey: key)
      case let object as NSObject: archiver.encode(object, forKey: key)
      default: Issue.record("\(key)")
      }
    }
  }

  private static var response: [(String, Any)] {
    [
      ("url", NSURL(fileURLWithPath: "/a/b")), ("mimeType", NSString("text/plain")),
      ("expectedContentLength", Int64(5)),
      ("textEncodingName", NSString("utf-8")), ("suggestedFilename", NSString("b.txt")),
    ]
  }

  private func check(_ response: URLResponse, _ key: String) {
    #expect(response.expectedContentLength >= -1, "\(key)")
    for text in [response.mimeType, response.textEncodingName] {
      #expect(text?.utf8.contains { $0 < 0x20 } != true, "\(key)")
    }
    let name = response.suggestedFilename ?? ""
    #expect(!name.isEmpty && !name.hasPrefix(".") && !name.contains("/") && !name.contains("\r"), "\(key): \(name)")
  }

  @Test func responses() throws {
    let found = try objects(
      URLResponse.self, objects: ["url", "mimeType", "textEncodingName", "suggestedFilename"],
      numbers: ["expectedContentLength"]
    ) { write($0, $1, Self.response) }
    #expect(found.count == 4 * Self.wrong.count + Self.wrongNumbers.count)
    for (key, response) in found { check(response, key) }
  }

  @Test(arguments: [
    ("../../etc/cron.d/x", "_.._etc_cron.d_x"), ("..", "Unknown"), (".", "Unknown"), (".hidden", "hidden"),
    ("/", "Unknown"), ("", "Unknown"), ("\0", "Unknown"), ("a/b", "a_b"), ("a\r\nb", "ab"),
    ("a\u{202E}gpj.exe", "agpj.exe"),
    ("kept.txt", "kept.txt"), ("Unknown", "Unknown"),
  ])
  func fileNames(archived: String, shown: String) throws {
    let decoder = try Self.decoder { $0.encode(archived as NSString, forKey: "suggestedFilename") }
    #expect(URLResponse(coder: decoder)?.suggestedFilename == shown)
  }

  @Test func responsesOverHTTP() throws {
    let good =
      Self.response + [
        ("statusCode", Int64(200)), ("httpVersion", NSString("HTTP/1.1")),
        ("allHeaderFields", NSDictionary(dictionary: ["X-One": "1"])),
      ]
    let found = try objects(
      HTTPURLResponse.self, objects: ["httpVersion", "allHeaderFields", "suggestedFilename"],
      numbers: ["statusCode", "expectedContentLength"]
    ) { write($0, $1, good) }
    #expect(found.contains { $0.key == "allHeaderFields" })
    for (key, response) in found {
      check(response, key)
      #expect(0...999 ~= response.statusCode, "\(key)")
      for (name, value) in response.fields.dictionary {
        #expect(name.isToken && !value.utf8.contains { [0, 10, 13].contains($0) }, "\(name): \(value)")
      }
    }
    #expect(found.contains { $0.object.fields.dictionary == ["x-y": "z"] })
  }

  @Test func cachedResponses() throws {
    let response = URLResponse()
    let good: [(String, Any)] = [
      ("response", response), ("data", NSData(data: Data([1]))), ("userInfo", NSData()), ("storagePolicy", Int64(0)),
    ]
    let found = try objects(
      CachedURLResponse.self, objects: ["response", "data", "userInfo"], numbers: ["storagePolicy"]
    ) { write($0, $1, good) }
    #expect(!found.contains { $0.key == "response" })
    // An unknown storage policy decodes as `.notAllowed`.
    let policies = found.filter { $0.key == "storagePolicy" }.map(\.object.storagePolicy)
    #expect(policies.prefix(5).allSatisfy { $0 == .notAllowed })
  }

  @Test func requests() throws {
    let good: [(String, Any)] = [
      ("url", NSURL(fileURLWithPath: "/")), ("method", NSString("PUT")), ("fieldNames", NSArray(array: ["A", "B"])),
      ("fieldValues", NSArray(array: ["1", "2"])),
    ]
    for type in [NSURLRequest.self, NSMutableURLRequest.self] {
      let found = try objects(
        type, objects: ["url", "mainDocumentURL", "method", "fieldNames", "fieldValues", "body", "cookiePartition"],
        numbers: ["cachePolicy", "timeoutInterval", "networkServiceType", "flags"]
      ) { write($0, $1, good) }
      #expect(!found.isEmpty)
      for (key, object) in found {
        let request = object as URLRequest
        #expect(request.httpMethod?.isToken == true, "\(key)")
        #expect(!request.timeoutInterval.isNaN, "\(key)")
        #expect(
          (request.allHTTPHeaderFields ?? [:]).allSatisfy { $0.key.isToken && !$0.value.contains("\n") }, "\(key)")
      }
    }
  }

  @Test func requestsThatWouldBeTwo() throws {
    let decoder = try Self.decoder {
      $0.encode(NSArray(array: ["X-One", "X\r\nEvil", "X-Two", "", "X-Three"]), forKey: "fieldNames")
      $0.encode(NSArray(array: ["1", "2", "3\r\nEvil: 4", "5", "6"]), forKey: "fieldValues")
    }
    #expect(NSURLRequest(coder: decoder)?.allHTTPHeaderFields == ["X-One": "1", "X-Three": "6"])
    let method = try Self.decoder { $0.encode("GET / HTTP/1.1\r\nEvil: 1\r\n\r\nGET" as NSString, forKey: "method") }
    #expect(NSURLRequest(coder: method) == nil)
  }

  @Test func credentials() throws {
    let good: [(String, Any)] = [
      ("user", NSString("u")), ("password", NSString("p")), ("persistence", Int64(2)),
    ]
    let found = try objects(URLCredential.self, objects: ["user", "password"], numbers: ["persistence"]) {
      write($0, $1, good)
    }
    #expect(found.allSatisfy { $0.object.hasPassword && $0.object.persistence.rawValue <= 3 } && !found.isEmpty)
  }

  @Test func protectionSpaces() throws {
    let good: [(String, Any)] = [
      ("host", NSString("h")), ("port", Int64(80)), ("protocol", NSString("http")), ("realm", NSString("r")),
      ("authenticationMethod", NSString(string: NSURLAuthenticationMethodHTTPBasic)),
    ]
    let found = try objects(
      URLProtectionSpace.self,
      objects: ["host", "protocol", "proxyType", "realm", "authenticationMethod", "distinguishedNames"],
      numbers: ["port", "isProxy"]
    ) { write($0, $1, good) }
    for (key, space) in found {
      #expect(0...65_535 ~= space.port && !space.host.contains("\r"), "\(key)")
      #expect(space.isProxy() ? space.protocol == nil : space.proxyType == nil, "\(key)")
    }
    #expect(!found.isEmpty)
  }

  /// Signed resume data is checked, too: it may be old, or written by a faulty program.
  @Test func resumeData() throws {
    let key = [UInt8](repeating: 1, count: 32)
    let point = ResumePoint(validator: "\"v\"", offset: 5, total: 10, coding: nil)
    let request = URLRequest(url: try #require(URL(string: "http://localhost/")))
    let good = try #require(ResumeData(request, point, fileName: "a.part"))
    func read(_ change: (inout ResumeData) -> Void) throws -> ResumeData? {
      var data = good
      change(&data)
      return try? ResumeData.decoded(try #require(data.encoded(key: key)), key: { key })
    }
    #expect(try read { _ in } == good)
    for wrong: (inout ResumeData) -> Void in [
      { $0.point.offset = -1 }, { $0.point.offset = 11 }, { $0.point.total = -1 }, { $0.point.validator = "a\r\nb: c" },
      { $0.fileName = "../key" },
    ] {
      #expect(try read(wrong) == nil)
    }
    let odd = try read {
      $0.fieldNames = ["X-One", "X\nTwo"]
      $0.fieldValues = ["1", "2"]
      $0.flags = .max
      $0.cachePolicy = 99
    }
    #expect(odd?.request?.allHTTPHeaderFields == ["X-One": "1"] && odd?.request?.cachePolicy == .useProtocolCachePolicy)
  }
}
