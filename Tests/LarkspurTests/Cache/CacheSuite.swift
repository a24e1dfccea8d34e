import Foundation
import TestKit

/// The public conformance suite of HTTP caches: for each test the requests, the origin's answers, and the results that
/// the client should see.
struct CacheSuite: Decodable {
  var name: String
  var id: String
  var tests: [Test]

  struct Test: Decodable, Sendable {
    var name: String
    var id: String
    var kind: String?
    var requests: [Request]
    var browser_only: Bool?
    var browser_skip: Bool?
    var cdn_only: Bool?
    var depends_on: [String]?

    var isRequired: Bool { (kind ?? "required") == "required" }

    /// Whether the test applies to private caches, for which the suite uses the word browser.
    var isForPrivateCaches: Bool { browser_skip != true && cdn_only != true }
  }

  struct Request: Decodable, Sendable {
    var request_method: String?
    var request_headers: [[Value]]?
    var request_body: String?
    var query_arg: String?
    var filename: String?
    var cache: String?
    var pause_after: Bool?
    var disconnect: Bool?
    var magic_locations: Bool?
    var magic_ims: Bool?
    var rfc850date: [String]?
    var response_status: [Value]?
    var response_headers: [[Value]]?
    var response_body: Value?
    var check_body: Bool?
    var expected_type: String?
    var expected_method: String?
    var expected_status: Value?
    var expected_request_headers: [Value]?
    var expected_request_headers_missing: [Value]?
    var expected_response_headers: [Value]?
    var expected_response_headers_missing: [Value]?
    var expected_response_text: Value?
    var expected_interim_responses: [Value]?
    var response_pause: Int?
    var setup: Bool?
    var setup_tests: [String]?

    private enum CodingKeys: String, CodingKey {
      case request_method, request_headers, request_body, query_arg, filename, cache, pause_after, disconnect
      case magic_locations, magic_ims, rfc850date, response_status, response_headers, response_body, check_body
      case expected_type, expected_method, expected_status, expected_request_headers
      case expected_request_headers_missing, expected_response_headers, expected_response_headers_missing
      case expected_response_text, expected_interim_responses, response_pause, setup, setup_tests
    }

    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      func value<T: Decodable>(_ key: CodingKeys, as type: T.Type = T.self) throws -> T? {
        try values.decodeIfPresent(T.self, forKey: key)
      }
      /// Decodes a value and distinguishes JSON `null` from a missing key.
      func nullable(_ key: CodingKeys) throws -> Value? {
        values.contains(key) ? try values.decode(Value.self, forKey: key) : nil
      }
      request_method = try value(.request_method)
      request_headers = try value(.request_headers)
      request_body = try value(.request_body)
      query_arg = try value(.query_arg)
      filename = try value(.filename)
      cache = try value(.cache)
      pause_after = try value(.pause_after)
      disconnect = try value(.disconnect)
      magic_locations = try value(.magic_locations)
      magic_ims = try value(.magic_ims)
      rfc850date = try value(.rfc850date)
      response_status = try value(.response_status)
      response_headers = try value(.response_headers)
      response_body = try nullable(.response_body)
      check_body = try value(.check_body)
      expected_type = try value(.expected_type)
      expected_method = try value(.expected_method)
      expected_status = try nullable(.expected_status)
      expected_request_headers = try value(.expected_request_headers)
      expected_request_headers_missing = try value(.expected_request_headers_missing)
      expected_response_headers = try value(.expected_response_headers)
      expected_response_headers_missing = try value(.expected_response_headers_missing)
      expected_response_text = try nullable(.expected_response_text)
      expected_interim_responses = try value(.expected_interim_responses)
      response_pause = try value(.response_pause)
      setup = try value(.setup)
      setup_tests = try value(.setup_tests)
    }

    var status: Int { response_status?.first?.number ?? 200 }

    func isSetup(_ check: String) -> Bool { setup == true || setup_tests?.contains(check) == true }
  }

  enum Value: Decodable, Sendable {
    case text(String)
    case number(Int)
    case flag(Bool)
    case list([Value])
    case null

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if value.decodeNil() {
        self = .null
      } else if let flag = try? value.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? value.decode(Int.self) {
        self = .number(number)
      } else if let text = try? value.decode(String.self) {
        self = .text(text)
      } else {
        self = .list(try value.decode([Value].self))
      }
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Int? { if case .number(let number) = self { number } else { nil } }
    var list: [Value]? { if case .list(let list) = self { list } else { nil } }
    var flag: Bool? { if case .flag(let flag) = self { flag } else { nil } }
    var isNull: Bool { if case .null = self { true } else { false } }
  }

  static func all() throws -> [CacheSuite] { try Corpora.decode([CacheSuite].self, from: "cache-tests/suite.json") }
}
