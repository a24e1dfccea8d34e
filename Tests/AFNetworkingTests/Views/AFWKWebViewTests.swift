import AFNetworking
import LarkspurTestServer
import Synchronization
import Testing

/// AFNetworking's tests of `WKWebView` and `UIWebView`, by their names, for a view of any toolkit.
@Suite(.timeLimit(.minutes(1))) struct AFWKWebViewTests {
  let fixture: ManagerFixture
  let view: TaskTargetTests.Page

  init() throws {
    fixture = try ManagerFixture()
    fixture.manager.responseSerializer = AFHTTPResponseSerializer()
    view = TaskTargetTests.Page(fixture.manager)
    fixture.server.route("GET", "/html") { _ in
      TestServer.Response(fields: ["Content-Type": "text/html"], body: .text("<p>hello"))
    }
  }

  /// Loads a document.
  ///
  /// - Returns: The text that the view is given.
  private func load(_ request: URLRequest, _ progress: ((Progress) -> Void)?) async -> String {
    await withCheckedContinuation { done in
      view.load(request, progress: progress) { response, text in
        #expect(response.statusCode == 200)
        done.resume(returning: text)
        return text
      } failure: { error in
        Issue.record(error)
        done.resume(returning: "")
      }
    }
  }

  /// In Swift, `nil` is the only absent progress: this is also `testNUllProgressDoesNotCauseCrash`.
  @Test func nilProgressDoesNotCauseCrash() async throws {
    #expect(await load(try fixture.request("/html"), nil) == "<p>hello")
    await view.journal.wait { $0.count == 1 }
    #expect(view.journal.lines[0].hasSuffix(" text/html utf-8 /html"))
  }

  @Test func progressIsSet() async throws {
    let fractions = Mutex<[Double]>([])
    let text = await load(try fixture.request("/bytes/1048576")) { progress in
      fractions.withLock { $0.append(progress.fractionCompleted) }
    }
    let all = fractions.withLock { $0 }
    #expect(!text.isEmpty && all == all.sorted() && all.last == 1)
  }

  @Test func requestWithCustomHeaders() async throws {
    var request = try fixture.request("/headers")
    request.setValue("Custom-Header-Value", forHTTPHeaderField: "Custom-Header-Field")
    let text = await load(request, nil)
    let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    let headers = object?["headers"] as? [String: Any] ?? [:]
    let field = headers.first { $0.key.lowercased() == "custom-header-field" }
    #expect("\(field?.value ?? "")" == "Custom-Header-Value")
  }
}
