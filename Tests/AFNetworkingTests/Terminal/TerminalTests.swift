import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import AFNetworking

@Suite(.timeLimit(.minutes(1))) struct TerminalTests {
  /// Records the written text.
  final class Screen: @unchecked Sendable {
    private let lock = NSLock()
    private var text = ""
    private var waits: [(String, CheckedContinuation<Void, Never>)] = []

    var written: String { lock.withLock { text } }

    /// The lines as a terminal shows them: the last text drawn on each line.
    var lines: [String] {
      written.split(separator: "\n", omittingEmptySubsequences: false).map { line in
        let drawn = line.replacing("\u{1b}[K", with: "")
        return String(drawn.split(separator: "\r", omittingEmptySubsequences: false).last ?? "")
      }
    }

    func terminal(isInteractive: Bool = true, columns: Int = 60) -> AFTerminal {
      AFTerminal(isInteractive: isInteractive, columns: columns) { [self] in write($0) }
    }

    private func write(_ piece: String) {
      let ready = lock.withLock {
        text += piece
        let ready = waits.filter { text.contains($0.0) }
        waits.removeAll { text.contains($0.0) }
        return ready
      }
      for (_, continuation) in ready { continuation.resume() }
    }

    /// Suspends until the text has been written.
    func wait(for expected: String) async {
      await withCheckedContinuation { continuation in
        let isThere = lock.withLock {
          if text.contains(expected) { return true }
          waits.append((expected, continuation))
          return false
        }
        if isThere { continuation.resume() }
      }
    }
  }

  // MARK: - Lines

  @Test func lines() {
    func line(_ label: String, _ share: Float, _ numbers: String, _ columns: Int) -> String {
      ProgressLine.text(label: label, share: share, numbers: numbers, columns: columns)
    }
    #expect(line("", 0, "", 20) == "  0% [             ]")
    #expect(line("", 0.5, "", 20) == " 50% [=====>       ]")
    #expect(line("", 1, "", 20) == "100% [=============]")
    #expect(line("", 0.999, "", 20).hasPrefix(" 99% [===========>"))
    #expect(line("a.bin", 0.25, "1 B of 4 B", 40) == "a.bin  25% [===>            ] 1 B of 4 B")
    // A bar has 8 to 40 columns.
    #expect(line("", 1, "", 200) == "100% [\(String(repeating: "=", count: 40))]")
    #expect(line("", 1, "", 15) == "100% [========]" && line("", 1, "", 14) == "100%")
    // There is no room for a bar, or not even for the text.
    #expect(line("label", 0.5, "10 B of 20 B", 24) == "label  50% 10 B of 20 B")
    #expect(line("label", 0.5, "10 B of 20 B", 8) == "label  5")
    #expect(line("label", 0.5, "", 0) == "" && line("label", 0.5, "", -3) == "")
    for share in stride(from: 0 as Float, through: 1, by: 0.01) {
      #expect(line("x", share, "1 B", 50).count == line("x", 0, "1 B", 50).count)
    }
  }

  @Test func byteCounts() {
    let expected: [Int64: String] = [
      0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1_048_575: "1.0 MiB", 67_108_864: "64.0 MiB",
      1 << 40: "1.0 TiB", .max: "8192.0 PiB", -5: "-5 B",
    ]
    for (count, text) in expected { #expect(ProgressLine.bytes(count) == text) }
    #expect(ProgressLine.numbers(10, of: 20) == "10 B of 20 B")
    #expect(ProgressLine.numbers(10, of: -1) == "10 B")
  }

  // MARK: - The bar

  @Test func settingProgress() {
    let screen = Screen()
    let bar = AFTerminalProgressView(terminal: screen.terminal(columns: 21))
    bar.setProgress(0.5, animated: true)
    #expect(screen.lines == [" 50% [=====>       ]"] && bar.progress == 0.5)
    bar.progress = 7
    #expect(screen.lines == ["100% [=============]"] && bar.progress == 1)
    bar.progress = .nan
    #expect(bar.progress == 0)
    bar.progress = -1
    #expect(bar.progress == 0)
  }

  @Test func aDownload() async throws {
    let server = try TestServer()
    let screen = Screen()
    let bar = AFTerminalProgressView(terminal: screen.terminal(), label: "file", drawInterval: 0.001)
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/bytes/100000")))
    let task = session.downloadTask(with: url) { _, _, _ in }
    bar.setProgressWithDownloadProgressOf(task, animated: true)
    await screen.wait(for: "0%")
    task.resume()
    await screen.wait(for: "\n")
    #expect(screen.lines.first?.hasPrefix("file 100% [==") == true)
    #expect(screen.lines.first?.hasSuffix("97.7 KiB of 97.7 KiB") == true)
    // The task has completed, so nothing more is drawn.
    #expect(screen.lines.count == 2 && screen.lines.last == "")
    #expect(bar.progress == 1)
  }

  @Test func anUploadIntoAFile() async throws {
    let server = try TestServer()
    let screen = Screen()
    let bar = AFTerminalProgressView(terminal: screen.terminal(isInteractive: false), drawInterval: 0.001)
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try #require(URL(string: server.url("/post"))))
    request.httpMethod = "POST"
    let task = session.uploadTask(with: request, from: Data(count: 2048)) { _, _, _ in }
    bar.setProgressWithUploadProgressOf(task, animated: false)
    task.resume()
    await screen.wait(for: "\n")
    // If the output is not a terminal, only the final line is written.
    #expect(screen.written.hasPrefix("100% [") && screen.written.hasSuffix("2.0 KiB of 2.0 KiB\n"))
    #expect(!screen.written.contains("\r") && !screen.written.contains("\u{1b}"))
  }

  @Test func aTaskThatFails() async throws {
    let server = try TestServer()
    let screen = Screen()
    let bar = AFTerminalProgressView(terminal: screen.terminal(), drawInterval: 0.001)
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: try #require(URL(string: server.url("/bytes/100"))))
    bar.setProgressWithDownloadProgressOf(task, animated: false)
    task.cancel()
    await screen.wait(for: "\n")
    #expect(screen.lines.first?.hasPrefix("  0%") == true)
  }

  // MARK: - The indicator

  @Test func anIndicatorTurnsWhileTheTaskRuns() async throws {
    let server = try TestServer()
    let screen = Screen()
    let indicator = AFTerminalActivityIndicatorView(
      terminal: screen.terminal(), label: "Loading", drawInterval: 0.001)
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: try #require(URL(string: server.url("/hang"))))
    indicator.setAnimatingWithStateOf(task)
    task.resume()
    for picture in AFTerminalActivityIndicatorView.pictures { await screen.wait(for: "\(picture) Loading") }
    #expect(indicator.isAnimating)
    task.suspend()
    await screen.wait(for: "\r\u{1b}[K")
    #expect(!indicator.isAnimating && screen.lines == [""])
    task.cancel()
  }

  /// After `stopAnimating` has returned, nothing more is drawn, even if a picture was being drawn during the call.
  @Test func nothingIsDrawnBehindTheEnd() async throws {
    let isDrawing = TestServer.Signal()
    let isStopping = Atomic(false)
    let screen = Mutex("")
    let clear = "\r\u{1b}[K"
    let terminal = AFTerminal { piece in
      if piece != clear {
        isDrawing.fire()
        Wait.blocking(until: "the indicator stops") { isStopping.load(ordering: .acquiring) }
        // A `stopAnimating` that did not wait for the drawing would write its text first.
        Wait.blockingMoment(microseconds: 1000)
      }
      screen.withLock { $0 += piece }
    }
    let indicator = AFTerminalActivityIndicatorView(terminal: terminal, drawInterval: 0.001)
    indicator.startAnimating()
    try await isDrawing.wait()
    await withCheckedContinuation { stopped in
      Thread.detachNewThread {
        isStopping.store(true, ordering: .releasing)
        indicator.stopAnimating()
        stopped.resume()
      }
    }
    #expect(screen.withLock { $0.hasSuffix(clear) } && !indicator.isAnimating)
  }

  @Test func anIndicatorWithoutATask() async {
    let screen = Screen()
    let indicator = AFTerminalActivityIndicatorView(terminal: screen.terminal(), drawInterval: 0.001)
    #expect(!indicator.isAnimating)
    indicator.startAnimating()
    await screen.wait(for: "\\")
    #expect(indicator.isAnimating)
    indicator.setAnimatingWithStateOf(nil)
    #expect(!indicator.isAnimating && screen.written.hasSuffix("\u{1b}[K"))
    indicator.stopAnimating()
  }

  @Test func aRefreshControl() async {
    let screen = Screen()
    let control = AFTerminalRefreshControl(terminal: screen.terminal(), label: "Mail", drawInterval: 0.001)
    control.beginRefreshing()
    await screen.wait(for: "| Mail")
    #expect(control.isRefreshing)
    control.endRefreshing()
    #expect(!control.isRefreshing && screen.lines == [""])
    let task = URLSession.shared.dataTask(with: URL(filePath: "/nothing"))
    control.setRefreshingWithStateOf(task)
    task.cancel()
    #expect(!control.isRefreshing)
  }

  /// A view that is released draws nothing more, and its task continues.
  @Test func aReleasedViewDrawsNothing() async throws {
    let server = try TestServer()
    let session = URLSession(configuration: .ephemeral)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/bytes/10")))
    let (stream, continuation) = AsyncStream.makeStream(of: Int?.self)
    let task = session.dataTask(with: url) { data, _, _ in continuation.yield(data?.count) }
    let screen = Screen()
    do {
      let indicator = AFTerminalActivityIndicatorView(terminal: screen.terminal())
      indicator.setAnimatingWithStateOf(task)
      let bar = AFTerminalProgressView(terminal: screen.terminal())
      bar.setProgressWithDownloadProgressOf(task, animated: false)
    }
    task.resume()
    #expect(await stream.first { _ in true } == .some(10))
  }
}
