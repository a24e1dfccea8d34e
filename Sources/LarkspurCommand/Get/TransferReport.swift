import Foundation
import Larkspur
import LarkspurConsole
import LarkspurHTTP

/// The facts of a transfer that `--write-out` writes. Before a part of the transfer has taken place, its facts are zero or
/// empty.
struct TransferReport {
  /// The value of a variable.
  enum Value {
    case text(String?)
    case number(Int)
    /// A status, which has three digits in text.
    case status(Int)
    case seconds(Double)

    var text: String {
      switch self {
      case .text(let text): text ?? ""
      case .number(let number): "\(number)"
      case .status(let status): Format.padded("\(status)", to: 3, with: "0", atEnd: false)
      case .seconds(let seconds): Format.decimal(seconds, digits: 6)
      }
    }

    fileprivate var json: String {
      switch self {
      case .text(let text): text.map(Format.json) ?? "null"
      case .status(let status): "\(status)"
      case .number, .seconds: self.text
      }
    }
  }

  /// A variable: its name, which is curl's, and its value.
  struct Variable: Sendable {
    let name: String
    /// Whether a download in pieces has it, which has several responses.
    let isOfPieces: Bool
    let value: @Sendable (TransferReport) -> Value

    init(_ name: String, ofPieces isOfPieces: Bool = false, _ value: @escaping @Sendable (TransferReport) -> Value) {
      (self.name, self.isOfPieces, self.value) = (name, isOfPieces, value)
    }
  }

  /// The URL of the command line, without user and password.
  var url: String
  /// The file for the content, or `nil` for standard output.
  var fileName: String?
  var failure: CommandFailure?
  /// The metrics of the last task, or `nil` if there was none.
  var metrics: URLSessionTaskMetrics?
  /// The head of the last response, as received.
  var head: [UInt8] = []
  /// The bytes that a complete download in pieces has received, and its time, or `nil` for another transfer.
  var pieces: (bytes: Int, time: Duration)?

  static let variables: [Variable] = [
    Variable("content_type") { .text($0.fields.firstValue(named: "Content-Type")) },
    Variable("errormsg", ofPieces: true) { .text($0.failure?.message) },
    Variable("exitcode", ofPieces: true) { .number(Int($0.failure?.status.rawValue ?? 0)) },
    Variable("filename_effective", ofPieces: true) { .text($0.fileName) },
    Variable("http_code") { .status($0.response?.statusCode ?? 0) },
    Variable("http_version") { .text($0.version) },
    Variable("local_ip") { .text($0.last?.localAddress ?? "") },
    Variable("local_port") { .number($0.last?.localPort.flatMap { Int($0) } ?? 0) },
    Variable("method") { .text($0.last?.request.httpMethod) },
    Variable("num_connects") {
      .number($0.transactions.count { $0.connectStartDate != nil && !$0.isReusedConnection })
    },
    Variable("num_headers") { .number($0.fields.count) },
    Variable("num_redirects") { .number($0.metrics?.redirectCount ?? 0) },
    Variable("redirect_url") { .text($0.redirection) },
    Variable("referer") { .text($0.last?.request.value(forHTTPHeaderField: "Referer")) },
    Variable("remote_ip") { .text($0.last?.remoteAddress ?? "") },
    Variable("remote_port") { .number($0.last?.remotePort.flatMap { Int($0) } ?? 0) },
    Variable("response_code") { .status($0.response?.statusCode ?? 0) },
    Variable("scheme") { .text($0.last == nil ? nil : $0.effectiveURL.prefix { $0 != ":" }.uppercased()) },
    Variable("size_download", ofPieces: true) { .number($0.received) },
    Variable("size_header") { .number($0.sum(\.countOfResponseHeaderBytesReceived)) },
    Variable("size_request") { .number($0.sum { $0.countOfRequestHeaderBytesSent + $0.countOfRequestBodyBytesSent }) },
    Variable("size_upload") { .number(Int(clamping: $0.last?.countOfRequestBodyBytesSent ?? 0)) },
    Variable("speed_download", ofPieces: true) { .number($0.rate($0.received)) },
    Variable("speed_upload") { .number($0.rate(Int(clamping: $0.last?.countOfRequestBodyBytesSent ?? 0))) },
    Variable("time_appconnect") { .seconds($0.time(\.secureConnectionEndDate)) },
    Variable("time_connect") { .seconds($0.time { $0.secureConnectionStartDate ?? $0.connectEndDate }) },
    Variable("time_namelookup") { .seconds($0.time(\.domainLookupEndDate)) },
    Variable("time_pretransfer") { .seconds($0.time(\.requestStartDate)) },
    Variable("time_redirect") { .seconds($0.metrics?.redirectCount ?? 0 > 0 ? $0.time(\.fetchStartDate) : 0) },
    Variable("time_starttransfer") { .seconds($0.time(\.responseStartDate)) },
    Variable("time_total", ofPieces: true) { .seconds($0.total) },
    Variable("url", ofPieces: true) { .text($0.url) },
    Variable("url_effective") { .text($0.effectiveURL) },
  ]

  init(url: String) { self.url = url }

  func value(of name: String) -> Value? { Self.variables.first { $0.name == name }?.value(self) }

  /// All variables that the transfer has, as an object of JSON.
  var json: String {
    let variables = Self.variables.filter { pieces == nil || $0.isOfPieces }
    return "{" + variables.map { "\(Format.json($0.name)):\($0.value(self).json)" }.joined(separator: ",") + "}"
  }

  /// The fields of the last response, as an object of JSON: a list of values for each name, in lower case.
  var fieldsAsJSON: String {
    var lists: [(name: String, values: [String])] = []
    for field in fields {
      let name = field.name.lowercased()
      if let index = lists.firstIndex(where: { $0.name == name }) {
        lists[index].values.append(field.value)
      } else {
        lists.append((name, [field.value]))
      }
    }
    return "{"
      + lists.map { "\(Format.json($0.name)):[\($0.values.map(Format.json).joined(separator: ","))]" }
      .joined(separator: ",\n") + "\n}"
  }

  /// The fields of the last response. Empty if the last request had none.
  var fields: FieldList {
    guard response != nil else { return [] }
    return head.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let value = String(decoding: line[(colon + 1)...], as: UTF8.self)
      return Field(
        String(decoding: line[..<colon], as: UTF8.self), value.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }

  // MARK: - Facts

  private var transactions: [URLSessionTaskTransactionMetrics] { metrics?.transactionMetrics ?? [] }
  private var last: URLSessionTaskTransactionMetrics? { transactions.last }
  private var response: HTTPURLResponse? { last?.response as? HTTPURLResponse }
  private var effectiveURL: String { last?.request.url?.absoluteString.withoutUserinfo ?? url }
  private var total: Double { pieces.map { Format.seconds($0.time) } ?? metrics?.taskInterval.duration ?? 0 }

  /// The version as curl names it: 1 for HTTP/1.0, and 0 without a response.
  private var version: String {
    guard let version = last?.networkProtocolName?.split(separator: "/").last else { return "0" }
    return version == "1.0" ? "1" : String(version)
  }

  /// The URL of a redirection that was not followed.
  private var redirection: String? {
    guard let response, 300..<400 ~= response.statusCode, let value = fields.firstValue(named: "Location") else {
      return nil
    }
    return LocationValue.target(Array(value.utf8), from: effectiveURL)
  }

  /// The bytes of the last response's content, without the lines of chunks and before it was decompressed. Of chunks with
  /// compressed content the lines count.
  private var received: Int {
    guard let last else { return pieces?.bytes ?? 0 }
    let isChunked = fields.contains(named: "Transfer-Encoding") && !fields.contains(named: "Content-Encoding")
    return Int(clamping: isChunked ? last.countOfResponseBodyBytesAfterDecoding : last.countOfResponseBodyBytesReceived)
  }

  private func sum(_ count: (URLSessionTaskTransactionMetrics) -> Int64) -> Int {
    transactions.reduce(0) { $0 + Int(clamping: count($1)) }
  }

  /// Returns the time from the start to an event of the last request, in seconds.
  private func time(_ event: (URLSessionTaskTransactionMetrics) -> Date?) -> Double {
    guard let start = metrics?.taskInterval.start, let date = last.flatMap(event) else { return 0 }
    return max(date.timeIntervalSince(start), 0)
  }

  private func rate(_ bytes: Int) -> Int { total > 0 ? Int(min(Double(bytes) / total, 1e18)) : 0 }
}
