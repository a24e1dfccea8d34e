import AFNetworking
import LarkspurTestServer
import Synchronization

extension DemoPart {
  private static let uploadBytes = 8 << 20

  /// A generated file, sent as a part of a form and read while it is sent. The progress block reports how much has been
  /// sent.
  static let networkingUpload = DemoPart("AFNetworking: a file in a form, with its progress") { stage in
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("larkspur-demo-\(UUID().uuidString).bin")
    defer { try? FileManager.default.removeItem(at: file) }
    let content = TestServer.content(count: uploadBytes)
    try Data(content).write(to: file)
    let manager = AFHTTPSessionManager(baseURL: try stage.url("/"), sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let shown = Mutex(0)
    let (answer, _) = try await manager.post(
      "post", parameters: ["title": "a lark's song"],
      constructingBodyWith: { form in try? form.appendPart(withFileURL: file, name: "song") },
      progress: { progress in
        let quarter = Int(progress.fractionCompleted * 4)
        let isNew = shown.withLock { shown in
          defer { shown = max(shown, quarter) }
          return quarter > shown
        }
        if isNew { stage.say("\(quarter * 25) % of \(progress.totalUnitCount) bytes have left") }
      })
    let members = answer as? [String: Any]
    let length = (members?["headers"] as? [String: Any])?["Content-Length"] as? String
    let count = members?["bodyCount"] as? Int
    stage.say("the server has counted \(count ?? 0) bytes")
    try DemoFailure.unless(count.map(String.init) == length, "Content-Length was \(length ?? "missing")")
    try DemoFailure.unless(count ?? 0 > uploadBytes, "the file is not all there")
    try DemoFailure.unless(shown.withLock { $0 } == 4, "the progress has not come to its end")
    return "\(count ?? 0) bytes, the length known beforehand"
  }
}
