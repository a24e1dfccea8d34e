import Foundation
import LarkspurTestServer
import Testing

@testable import Larkspur

/// Tests the secrets that other clients have sent to the wrong server. Each test is named after its report.
@Suite struct RedirectionCredentialTests {
  private static let secrets = ["Authorization", "Cookie", "Proxy-Authorization"]

  /// The names of the secret fields that a redirection from one URL to another keeps.
  private func kept(
    from url: String, to location: String, names: [String] = secrets, status: Int = 302
  ) throws -> Set<String> {
    var request = try TaskMachineTests.request(url)
    request.allHTTPHeaderFields = Dictionary(uniqueKeysWithValues: names.map { ($0, "secret") })
    let response = try TaskMachineTests.response(status, ["Location": location], url: url)
    guard let next = Redirection.next(after: response, to: request) else {
      Issue.record("\(location) is not followed")
      return []
    }
    return Set((next.allHTTPHeaderFields ?? [:]).keys)
  }

  @Test func withinAnOriginTheyStay() throws {
    #expect(try kept(from: "http://a.example/", to: "/next") == Set(Self.secrets))
    #expect(try kept(from: "http://a.example/", to: "HTTP://A.Example:80/next") == Set(Self.secrets))
    #expect(try kept(from: "https://a.example/", to: "https://a.example:443/") == Set(Self.secrets))
    #expect(try kept(from: "http://[::1]:81/", to: "http://[::1]:81/next") == Set(Self.secrets))
  }

  @Test("CVE-2018-1000007: an Authorization field of one's own goes to another host")
  func cve_2018_1000007() throws {
    #expect(try kept(from: "http://a.example/", to: "http://b.example/") == [])
  }

  @Test("CVE-2022-27774: another port or protocol of the host counts as the same origin")
  func cve_2022_27774() throws {
    #expect(try kept(from: "http://a.example/", to: "http://a.example:81/") == [])
    #expect(try kept(from: "http://a.example/", to: "https://a.example/") == [])
  }

  @Test("CVE-2022-27776: a Cookie field goes to another port")
  func cve_2022_27776() throws {
    #expect(try kept(from: "http://a.example:1/", to: "http://a.example:2/", names: ["Cookie"]) == [])
  }

  @Test("CVE-2025-14524: a bearer token goes to another protocol")
  func cve_2025_14524() throws {
    #expect(try kept(from: "https://a.example/", to: "http://a.example/", names: ["Authorization"]) == [])
  }

  @Test("CVE-2018-18074: from https to http on one host")
  func cve_2018_18074() throws {
    #expect(try kept(from: "https://a.example/", to: "http://a.example/") == [])
    #expect(try kept(from: "https://a.example:80/", to: "http://a.example:80/") == [])
  }

  @Test("CVE-2018-20060 and CVE-2018-25091: names are compared with regard to case")
  func cve_2018_20060() throws {
    let names = ["aUTHORIZATION", "cookie", "PROXY-authorization"]
    #expect(try kept(from: "http://a.example/", to: "http://b.example/", names: names) == [])
  }

  @Test("CVE-2023-43804 and CVE-2022-31151: a Cookie field of one's own goes to another origin")
  func cve_2023_43804() throws {
    #expect(try kept(from: "http://a.example/", to: "http://b.example/", names: ["Cookie", "Accept"]) == ["Accept"])
  }

  @Test("CVE-2023-45803: what was said of a body stays when the body goes", arguments: [301, 302, 303])
  func cve_2023_45803(status: Int) throws {
    var request = try TaskMachineTests.request()
    request.httpMethod = "POST"
    request.httpBody = Data("secret".utf8)
    for name in [
      "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Digest", "Content-Language",
      "Content-Location", "Content-MD5", "Content-Range", "Expect",
    ] {
      request.setValue("x", forHTTPHeaderField: name)
    }
    request.setValue("x", forHTTPHeaderField: "Accept")
    let response = try TaskMachineTests.response(status, ["Location": "/next"])
    guard let next = Redirection.next(after: response, to: request) else {
      Issue.record("it is not followed")
      return
    }
    #expect(next.httpMethod == "GET")
    #expect(next.httpBody == nil)
    #expect(next.allHTTPHeaderFields == ["Accept": "x"])
  }

  @Test("CVE-2023-45289: a host whose name ends like the other's counts as a part of it")
  func cve_2023_45289() throws {
    for location in [
      "http://sub.a.example/", "http://evila.example/", "http://example/", "http://[fe80::1%25.a.example]/",
      "http://a.example./",
    ] {
      #expect(try kept(from: "http://a.example/", to: location) == [], "\(location)")
    }
  }

  @Test("CVE-2024-45336: what was dropped comes back with the way back")
  func cve_2024_45336() throws {
    var request = try TaskMachineTests.request()
    request.setValue("secret", forHTTPHeaderField: "Authorization")
    var machine = TaskMachine(request)
    for location in ["http://b.example/", "http://b.example/2", "http://a.example/"] {
      let response = try TaskMachineTests.response(302, ["Location": location])
      guard case .askRedirection(_, let next) = machine.responseReceived(response) else {
        Issue.record("\(location) is not followed")
        return
      }
      _ = machine.redirectionAnswered(next)
    }
    #expect(machine.request.value(forHTTPHeaderField: "Authorization") == nil)
    // The secret fields of the configuration are not sent either.
    #expect(machine.hasLeftOrigin)
  }

  @Test("CVE-2025-4673: Proxy-Authorization goes along")
  func cve_2025_4673() throws {
    #expect(try kept(from: "http://a.example/", to: "http://b.example/", names: ["Proxy-Authorization"]) == [])
  }

  /// Makes two servers: `/away` of the first redirects to the second, which redirects to `/get` of the first.
  private static func thereAndBack() throws -> (first: TestServer, second: TestServer) {
    let (first, second) = (try TestServer(), try TestServer())
    let (home, back) = (first.url("/get"), second.url("/back"))
    second.route("GET", "/back") { _ in .redirect(to: home) }
    first.route("GET", "/away") { _ in .redirect(to: back) }
    return (first, second)
  }

  /// After a redirection to another server, neither that server nor the original one gets the secrets.
  @Test("CVE-2018-1000007, CVE-2022-27774 and CVE-2024-45336 over the wire")
  func anotherServerHearsNoSecrets() async throws {
    let (first, second) = try Self.thereAndBack()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["Authorization": "Bearer configured", "X-Program": "yes"]
    let session = URLSession(configuration: configuration)
    var request = URLRequest(url: try #require(URL(string: first.url("/away"))))
    request.setValue("Bearer own", forHTTPHeaderField: "Authorization")
    request.setValue("a=b", forHTTPHeaderField: "Cookie")
    let (_, response) = try await session.data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    let asked = try #require(first.requests.first)
    #expect(asked.fields["authorization"] == "Bearer own")
    #expect(asked.fields["cookie"] == "a=b")
    let later = second.requests + first.requests.dropFirst()
    #expect(later.count == 2)
    for request in later {
      #expect(request.fields["authorization"] == nil)
      #expect(request.fields["cookie"] == nil)
      #expect(request.fields["x-program"] == "yes")
    }
  }

  /// `currentRequest` shows the configuration's fields that are sent, and no others, since programs log it.
  @Test func theCurrentRequestShowsTheAdditionalFields() async throws {
    let (server, other) = try Self.thereAndBack()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = [
      "Authorization": "Bearer a", "X-Program": "yes", "X-Own": "theirs", "Content-Length": "9",
    ]
    let recorder = SessionRecorder()
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    var request = URLRequest(url: try #require(URL(string: server.url("/away"))))
    request.setValue("mine", forHTTPHeaderField: "X-Own")
    let task = session.dataTask(with: request)
    let before = ["Authorization": "Bearer a", "X-Program": "yes", "X-Own": "mine"]
    #expect(task.currentRequest?.allHTTPHeaderFields == before)
    #expect(task.originalRequest?.allHTTPHeaderFields == ["X-Own": "mine"])
    task.resume()
    await recorder.waitForEnds()
    #expect(other.requestsReceived == 1)
    #expect(task.currentRequest?.url?.path == "/get")
    #expect(task.currentRequest?.allHTTPHeaderFields == ["X-Program": "yes", "X-Own": "mine"])
    session.invalidateAndCancel()
  }
}
