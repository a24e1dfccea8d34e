import Foundation
import LarkspurHTTP

/// The suite's origin server for one test: answers by the test's script and records the requests. Does no I/O, so it
/// can serve a function call or a socket.
struct CacheSuiteOrigin: Sendable {
  struct Answer: Sendable {
    var status: Int
    var fields: FieldList
    var body: Data
    /// Whether the connection is cut in place of this answer.
    var isDisconnect = false
  }

  /// A recorded request, and the response fields that the client is expected to show.
  struct Seen: Sendable {
    var number: Int
    var method: String
    var fields: FieldList
    var shownFields: FieldList
  }

  let id: String
  private(set) var requests: [CacheSuite.Request]
  private(set) var seen: [Seen] = []
  /// The fields of each answer as they were sent. The text of a date is known only then.
  private var sent: [Int: FieldList] = [:]

  init(id: String, requests: [CacheSuite.Request]) {
    self.id = id
    self.requests = requests
  }

  /// Answers a request by the script and records it.
  ///
  /// - Parameters:
  ///   - path: The path of the request, with its query.
  ///   - now: Seconds since 1970.
  /// - Returns: The answer, or `nil` if the script has no request of this number.
  mutating func answer(method: String, path: String, fields: FieldList, now: Double) -> Answer? {
    let count = seen.count + 1
    let clientNumber = fields.firstValue(named: "Req-Num").flatMap(Int.init)
    let number = clientNumber ?? count
    guard requests.indices.contains(number - 1) else { return nil }
    let script = requests[number - 1]
    var status = script.status
    if script.expected_type?.hasSuffix("validated") == true {
      // If the previous answer was never sent, its fields in the script count.
      let script = requests.indices.contains(number - 2) ? requests[number - 2].response_headers ?? [] : []
      let before =
        sent[number - 1]
        ?? script.compactMap { field in field.first?.text.map { Field($0, field.count > 1 ? field[1].text ?? "" : "") }
        }
      let isUnmodified = [("If-Modified-Since", "Last-Modified"), ("If-None-Match", "ETag")].contains {
        condition, name in
        let validator = before.values(named: name).last
        return validator != nil && fields.firstValue(named: condition) == validator
      }
      status = isUnmodified ? 304 : 999
    }
    let milliseconds = Int(now * 1000)
    var answered: FieldList = [
      Field("Server-Base-Url", path), Field("Server-Request-Count", "\(count)"),
      Field("Client-Request-Count", clientNumber.map { "\($0)" } ?? "NaN"), Field("Server-Now", "\(milliseconds)"),
    ]
    var shown: FieldList = []
    for field in script.response_headers ?? [] {
      guard let name = field.first?.text, field.count > 1 else { continue }
      let value = Self.fixed(name, field[1], script: script, base: path, serverNow: Double(milliseconds) / 1000)
      answered.append(Field(name, value))
      if field.count < 3 || field[2].flag == true {
        let all = answered.values(named: name).joined(separator: ", ")
        shown.replace(name, with: all)
      }
    }
    sent[number] = answered
    if !answered.contains(named: "Content-Type") { answered.append(Field("Content-Type", "text/plain")) }
    seen.append(Seen(number: number, method: method, fields: fields, shownFields: shown))
    answered.append(Field("Request-Numbers", seen.map { "\($0.number)" }.joined(separator: " ")))
    // The suite's HTTP library adds these fields.
    if !answered.contains(named: "Date") { answered.append(Field("Date", HTTPDate.format(now))) }
    var body = Data()
    if status != 204, status != 304 {
      body = Data((script.response_body?.text ?? id).utf8)
      if !answered.contains(named: "Content-Length"), !answered.contains(named: "Transfer-Encoding") {
        answered.append(Field("Content-Length", "\(body.count)"))
      }
    }
    return Answer(
      status: status, fields: answered, body: method == "HEAD" ? Data() : body,
      isDisconnect: script.disconnect == true)
  }

  /// Converts a scripted field value: a number in a date field means seconds from now, and a location may be relative
  /// to the test's URL.
  static func fixed(
    _ name: String, _ value: CacheSuite.Value, script: CacheSuite.Request, base: String?, serverNow: Double?
  ) -> String {
    let lowercased = name.lowercased()
    let dates = ["date", "expires", "last-modified", "if-modified-since", "if-unmodified-since"]
    if dates.contains(lowercased), let seconds = value.number, let serverNow {
      let isOld = script.rfc850date?.contains(lowercased) == true
      return isOld ? rfc850(serverNow + Double(seconds)) : HTTPDate.format(serverNow + Double(seconds))
    }
    let text = value.text ?? value.number.map { "\($0)" } ?? ""
    if ["location", "content-location"].contains(lowercased), script.magic_locations == true, let base {
      return text.isEmpty ? base : "\(base)/\(text)"
    }
    return text
  }

  private static func rfc850(_ seconds: Double) -> String {
    let date = HTTPDate.format(seconds).split(separator: " ")
    let days = [
      "Sun,": "Sunday", "Mon,": "Monday", "Tue,": "Tuesday", "Wed,": "Wednesday", "Thu,": "Thursday",
      "Fri,": "Friday", "Sat,": "Saturday",
    ]
    return "\(days[String(date[0])] ?? ""), \(date[1])-\(date[2])-\(date[3].suffix(2)) \(date[4]) GMT"
  }
}
