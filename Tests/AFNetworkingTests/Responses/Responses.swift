import AFNetworking
import Foundation
import Testing

/// Makes responses without a server.
enum Responses {
  static func make(_ status: Int = 200, type: String?) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://a.example/x"))
    let fields = type.map { ["Content-Type": $0] }
    return try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
  }
}

extension AFURLResponseSerialization {
  /// Serializes a response.
  ///
  /// - Returns: The object and the error.
  func read(_ response: URLResponse?, _ data: Data?) -> (object: Any?, error: NSError?) {
    var error: NSError?
    let object = responseObject(for: response, data: data, error: &error)
    return (object, error)
  }

  func read(_ response: URLResponse?, _ text: String) -> (object: Any?, error: NSError?) {
    read(response, Data(text.utf8))
  }
}

/// Archives objects as programs do.
enum Archive {
  static func roundTrip<Object: NSObject & NSSecureCoding>(_ object: Object) throws -> Object {
    let data = try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: true)
    return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: Object.self, from: data))
  }
}
