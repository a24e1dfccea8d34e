import AFNetworking
import LarkspurTestServer

extension DemoPart {
  /// A GET with parameters and a POST of a form, compared with the server's record of them.
  static let networkingRequests = DemoPart("AFNetworking: a GET with parameters, a POST of a form") { stage in
    let manager = AFHTTPSessionManager(baseURL: try stage.url("/"), sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    let (got, _) = try await manager.get("get", parameters: ["bird": "lark", "songs": ["dawn", "noon"]])
    let target = Self.text(got, "target")
    stage.say("GET \(target)")
    let (posted, _) = try await manager.post("post", parameters: ["bird": "sky lark", "colour": "brown & buff"])
    stage.say("POST \(Self.text(posted, "data"))")
    try DemoFailure.unless(target == "/get?bird=lark&songs%5B%5D=dawn&songs%5B%5D=noon", "the query is another one")
    try DemoFailure.unless(
      Self.text(posted, "data") == "bird=sky%20lark&colour=brown%20%26%20buff", "the form is another one")
    return "JSON to dictionaries and back"
  }

  private static func text(_ object: Any?, _ member: String) -> String {
    (object as? [String: Any])?[member] as? String ?? "(missing)"
  }
}
