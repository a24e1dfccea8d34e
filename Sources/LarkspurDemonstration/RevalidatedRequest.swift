import Foundation
import Larkspur
import LarkspurConsole
import LarkspurTestServer

extension DemoPart {
  /// A response that is loaded twice. The second time the client only checks whether the response has changed.
  static let revalidatedRequest = DemoPart("A cached answer, revalidated") { stage in
    let count = 1 << 18
    let tag = "\"feather-1\""
    stage.server.route("GET", "/feather") { request in
      let fields: TestServer.Fields = ["ETag": tag, "Cache-Control": "no-cache"]
      guard request.fields["If-None-Match"] != tag else { return TestServer.Response(status: 304, fields: fields) }
      return TestServer.Response(fields: fields, body: .content(0..<count))
    }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let requestsBefore = stage.server.requests.count
    for _ in 0..<2 {
      let listener = MetricsListener()
      let (data, response) = try await session.data(from: try stage.url("/feather"), delegate: listener)
      let status = (response as? HTTPURLResponse)?.statusCode ?? 0
      let received = listener.metrics?.transactionMetrics.reduce(0) { $0 + $1.countOfResponseBodyBytesReceived } ?? -1
      let asked = stage.server.requests.last?.fields["If-None-Match"]
      stage.say("GET /feather" + (asked.map { ", If-None-Match: \($0)" } ?? ""))
      stage.say("\(status) with \(Format.grouped(data.count)) bytes, \(Format.grouped(Int(received))) of them by wire")
      try DemoFailure.unless(status == 200, "the status is \(status)")
      try DemoFailure.unless(
        TestServer.Checksum(Array(data)) == TestServer.contentChecksum(count: count), "other bytes came")
    }
    let questions = stage.server.requests.dropFirst(requestsBefore).map { $0.fields["If-None-Match"] }
    try DemoFailure.unless(questions == [nil, tag], "the server was asked otherwise: \(questions)")
    return "\(Format.bytes(count)) once, then a 304"
  }
}
