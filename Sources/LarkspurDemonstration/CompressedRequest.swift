import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization

extension DemoPart {
  /// JSON that is compressed in transit and decompressed by the session.
  static let compressedRequest = DemoPart("JSON, compressed on its way") { stage in
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let listener = MetricsListener()
    let (data, response) = try await session.data(from: try stage.url("/gzip?nest=5"), delegate: listener)
    let asked = stage.server.requests.last?.fields["Accept-Encoding"] ?? "nothing"
    stage.say("GET /gzip?nest=5, Accept-Encoding: \(asked)")
    guard let transaction = listener.metrics?.transactionMetrics.last else { throw DemoFailure("there are no metrics") }
    let (received, decoded) =
      (transaction.countOfResponseBodyBytesReceived, transaction.countOfResponseBodyBytesAfterDecoding)
    stage.say("\(received) bytes came, \(decoded) when they were decompressed")
    let echo = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    let target = echo?["target"] as? String ?? "(missing)"
    stage.say("the server says that it was asked for \(target)")
    try DemoFailure.unless((response as? HTTPURLResponse)?.statusCode == 200, "the status is not 200")
    try DemoFailure.unless(target == "/gzip?nest=5", "the JSON says something else")
    try DemoFailure.unless(decoded == Int64(data.count) && received < decoded, "nothing was compressed")
    return "\(received) bytes for \(decoded)"
  }
}

/// Keeps the metrics of a task.
final class MetricsListener: NSObject, URLSessionTaskDelegate, Sendable {
  private let heard = Mutex<URLSessionTaskMetrics?>(nil)

  var metrics: URLSessionTaskMetrics? { heard.withLock { $0 } }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    heard.withLock { $0 = metrics }
  }
}
