import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// Activity indicators, refresh controls, progress views and documents, for any toolkit's view.
@Suite(.timeLimit(.minutes(1))) struct TaskTargetTests {
  let fixture: ManagerFixture
  /// Views are called on the threads that schedule.
  static let atOnce = AFViewScheduler { $0() }

  init() throws { fixture = try ManagerFixture() }

  final class Spinner: AFActivityTarget, AFRefreshTarget, @unchecked Sendable {
    let taskSlot = AFTaskSlot(pollInterval: 0.001, scheduler: TaskTargetTests.atOnce)
    let journal: Journal

    init(_ journal: Journal = Journal()) { self.journal = journal }

    func startAnimating() { journal.note("start") }
    func stopAnimating() { journal.note("stop") }
    func beginRefreshing() { startAnimating() }
    func endRefreshing() { stopAnimating() }
  }

  @Test(arguments: [false, true]) func activity(isRefreshControl: Bool) async throws {
    let spinner = Spinner()
    let task = fixture.manager.dataTask(with: try fixture.request("/hang"), completionHandler: nil)
    task.resume()
    if isRefreshControl { spinner.setRefreshingWithStateOf(task) } else { spinner.setAnimatingWithStateOf(task) }
    // A running task is shown at once.
    #expect(spinner.journal.lines == ["start"])
    task.suspend()
    await spinner.journal.wait { $0.count == 2 }
    task.resume()
    await spinner.journal.wait { $0.count == 3 }
    task.cancel()
    await spinner.journal.wait { $0.count == 4 }
    #expect(spinner.journal.lines == ["start", "stop", "start", "stop"])
  }

  @Test func noTask() throws {
    let spinner = Spinner()
    let task = fixture.manager.dataTask(with: try fixture.request("/hang"), completionHandler: nil)
    spinner.setAnimatingWithStateOf(task)
    spinner.setAnimatingWithStateOf(nil)
    #expect(spinner.journal.lines == ["stop", "stop"])
    task.cancel()
  }

  final class Bar: AFProgressTarget, @unchecked Sendable {
    let taskSlot = AFTaskSlot(pollInterval: 0.001, scheduler: TaskTargetTests.atOnce)
    let journal = Journal()

    func setProgress(_ progress: Float, animated: Bool) { journal.note("\(progress) \(animated)") }
  }

  @Test func downloads() async throws {
    let bar = Bar()
    let task = fixture.manager.downloadTask(with: try fixture.request("/bytes/100000"), completionHandler: nil)
    bar.setProgressWithDownloadProgressOf(task, animated: true)
    #expect(bar.journal.lines == ["0.0 true"])
    task.resume()
    await bar.journal.wait(for: "1.0 true")
    #expect(bar.journal.lines.last == "1.0 true")
  }

  @Test func uploads() async throws {
    let bar = Bar()
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    let task = fixture.manager.uploadTask(with: request, from: Data(count: 100_000), completionHandler: nil)
    bar.setProgressWithUploadProgress(of: task, animated: false)
    task.resume()
    await bar.journal.wait(for: "1.0 false")
  }

  /// The latest task wins.
  @Test func anotherTask() async throws {
    let bar = Bar()
    let first = fixture.manager.dataTask(with: try fixture.request("/bytes/10"), completionHandler: nil)
    let second = fixture.manager.dataTask(with: try fixture.request("/bytes/20"), completionHandler: nil)
    bar.setProgressWithDownloadProgress(of: first, animated: false)
    bar.setProgressWithDownloadProgress(of: second, animated: true)
    first.resume()
    second.resume()
    await bar.journal.wait(for: "1.0 true")
    #expect(!bar.journal.lines.contains("1.0 false"))
  }

  @Test func shares() {
    #expect(transferShare(1, of: 4) == 0.25 && transferShare(5, of: 4) == 1 && transferShare(-1, of: 4) == 0)
    #expect(transferShare(1, of: 0) == 0 && transferShare(1, of: -1) == 0 && transferShare(.max, of: .max) == 1)
  }

  /// The terminal's views can be used wherever a view of these protocols is wanted.
  @Test func terminalViews() async throws {
    func follow(
      _ task: URLSessionTask, _ bar: some AFProgressTarget, _ spinner: some AFActivityTarget & AFRefreshTarget
    ) {
      bar.setProgressWithDownloadProgressOf(task, animated: true)
      spinner.setAnimatingWithStateOf(task)
    }
    let screen = TerminalTests.Screen()
    let bar = AFTerminalProgressView(terminal: screen.terminal(), label: "file", drawInterval: 0.001)
    let spinner = AFTerminalRefreshControl(terminal: AFTerminal { _ in }, drawInterval: 0.001)
    let task = fixture.manager.dataTask(with: try fixture.request("/bytes/2048"), completionHandler: nil)
    follow(task, bar, spinner)
    task.resume()
    await screen.wait(for: "2.0 KiB of 2.0 KiB\u{1b}[K\n")
  }

  // MARK: - Documents

  final class Page: AFDocumentTarget, @unchecked Sendable {
    let documentSlot: AFDocumentSlot
    let journal = Journal()

    init(_ manager: AFHTTPSessionManager) {
      documentSlot = AFDocumentSlot(sessionManager: manager, scheduler: TaskTargetTests.atOnce)
    }

    func load(_ data: Data, mimeType: String, characterEncodingName: String, baseURL: URL) {
      journal.note("\(data.base64EncodedString()) \(mimeType) \(characterEncodingName) \(baseURL.path)")
    }
  }

  private func page() -> Page {
    let manager = fixture.manager
    manager.responseSerializer = AFHTTPResponseSerializer()
    return Page(manager)
  }

  private func serve(_ type: String, _ bytes: [UInt8]) {
    fixture.server.route("GET", "/page") { _ in
      TestServer.Response(fields: ["Content-Type": type], body: .bytes(bytes))
    }
  }

  @Test func documents() async throws {
    let page = page()
    serve("text/html", Array("<p>hello".utf8))
    let progress = Mutex<Int64>(0)
    page.load(try fixture.request("/page")) { value in
      progress.withLock { $0 = value.completedUnitCount }
    } success: { response, text in
      #expect(response.statusCode == 200 && text == "<p>hello")
      return "<b>"
    } failure: { _ in
      Issue.record("failure")
    }
    await page.journal.wait { $0.count == 1 }
    #expect(page.journal.lines == ["\(Data("<b>".utf8).base64EncodedString()) text/html utf-8 /page"])
    #expect(progress.withLock { $0 } == 8)
    page.load(try fixture.request("/page"), mimeType: "text/x", textEncodingName: "ascii", success: nil)
    await page.journal.wait { $0.count == 2 }
    #expect(page.journal.lines[1] == "\(Data("<p>hello".utf8).base64EncodedString()) text/x ascii /page")
  }

  /// Text that is changed keeps its encoding, unless it has characters that the encoding lacks.
  @Test func otherEncodings() async throws {
    let page = page()
    serve("text/html; charset=iso-8859-1", [0xe4])
    page.load(try fixture.request("/page"), success: { $1 + "\u{f6}" })
    await page.journal.wait { $0.count == 1 }
    page.load(try fixture.request("/page"), success: { $1 + "\u{20ac}" })
    await page.journal.wait { $0.count == 2 }
    let utf8 = Data("\u{e4}\u{20ac}".utf8).base64EncodedString()
    #expect(
      page.journal.lines == [
        "\(Data([0xe4, 0xf6]).base64EncodedString()) text/html iso-8859-1 /page", "\(utf8) text/html utf-8 /page",
      ])
  }

  @Test func failingDocuments() async throws {
    let page = page()
    let journal = Journal()
    page.load(try fixture.request("/status/404"), success: { $1 }) { journal.note("\(($0 as NSError).code)") }
    await journal.wait { $0.count == 1 }
    #expect(journal.lines == ["\(NSURLErrorBadServerResponse)"] && page.journal.lines == [])
  }

  /// The latest request wins; the blocks of cancelled ones are not called.
  @Test func theLatestDocumentWins() async throws {
    let page = page()
    serve("text/plain", [65])
    for _ in 0..<2 {
      page.load(try fixture.request("/hang"), success: { $1 }) { _ in Issue.record("failure") }
    }
    page.load(try fixture.request("/page"), success: nil, failure: nil)
    await page.journal.wait { $0.count == 1 }
    page.load(try fixture.request("/hang"), success: { $1 }) { _ in Issue.record("failure") }
    page.cancelDocumentTask()
    #expect(page.journal.lines == ["QQ== text/plain utf-8 /page"])
  }
}
