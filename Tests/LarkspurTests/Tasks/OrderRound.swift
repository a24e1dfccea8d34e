import Foundation
import Larkspur
import LarkspurTestServer
import TestKit

/// The random behaviour of a server, a program and a delegate in one round, and the rules for the resulting calls.
struct OrderRound: Sendable, CustomStringConvertible {
  enum Kind: CaseIterable { case data, download, upload, streamedUpload }

  /// The end of the server's response.
  enum ResponseEnd: CaseIterable { case whole, cut, reset }

  /// The program's calls outside delegate methods.
  enum Call: CaseIterable { case suspend, resume, cancel, finish, invalidate, setDelegate, letServerGoOn, yield }

  /// The delegate's calls inside its methods.
  enum Deed: CaseIterable { case nothing, cancel, suspendForAWhile, setDelegate, invalidate }

  var kind: Kind
  var redirects: Int
  var redirectRefused: Int?
  var status: Int
  var pieces: [String]
  var isChunked: Bool
  var end: ResponseEnd
  /// The steps before which the server waits for the program.
  var waits: [Bool]
  var calls: [Call]
  /// The numbers of the delegate calls in which a deed happens.
  var deeds: [Int: Deed]
  var disposition: URLSession.ResponseDisposition
  var answersLate: Bool
  var isConcurrent: Bool

  init(_ dice: inout SeededGenerator) {
    kind = Kind.allCases.randomElement(using: &dice) ?? .data
    redirects = Int.random(in: 0..<3, using: &dice)
    redirectRefused = Int.random(in: 0..<4, using: &dice) == 0 ? Int.random(in: 0..<3, using: &dice) : nil
    status = [200, 200, 404, 500].randomElement(using: &dice) ?? 200
    let count = Int.random(in: 0..<5, using: &dice)
    pieces = (0..<count).map { number in String(repeating: "\(number)", count: number * 700 + 1) }
    isChunked = Bool.random(using: &dice)
    end = Int.random(in: 0..<3, using: &dice) == 0 ? (ResponseEnd.allCases.randomElement(using: &dice) ?? .cut) : .whole
    waits = (0..<12).map { _ in Int.random(in: 0..<4, using: &dice) == 0 }
    calls = (0..<Int.random(in: 0..<8, using: &dice)).map { _ in Self.rarely(Call.allCases, &dice) }
    deeds = [:]
    if Bool.random(using: &dice) {
      deeds[Int.random(in: 0..<6, using: &dice)] = Deed.allCases.randomElement(using: &dice) ?? .nothing
    }
    disposition = [.allow, .allow, .becomeDownload, .cancel].randomElement(using: &dice) ?? .allow
    answersLate = Bool.random(using: &dice)
    isConcurrent = Int.random(in: 0..<3, using: &dice) == 0
  }

  /// Makes the calls that end the task or the session rare, so that they do not end every round.
  private static func rarely(_ calls: [Call], _ dice: inout SeededGenerator) -> Call {
    let call = calls.randomElement(using: &dice) ?? .yield
    switch call {
    case .cancel, .invalidate: return Int.random(in: 0..<3, using: &dice) == 0 ? call : .yield
    default: return call
    }
  }

  var description: String {
    "\(kind) redirects \(redirects) refused \(redirectRefused ?? -1) status \(status) pieces \(pieces.count) "
      + "chunked \(isChunked) end \(end) waits \(waits.map { $0 ? 1 : 0 }) calls \(calls.map { "\($0)" }) deeds \(deeds.mapValues { "\($0)" }) "
      + "disposition \(disposition.rawValue) late \(answersLate) concurrent \(isConcurrent)"
  }

  /// The whole body of the response.
  var body: String { pieces.joined() }

  // MARK: - The server

  func script(_ signals: inout [TestServer.Signal]) -> TestServer.Script {
    var steps: [TestServer.Step] = []
    var number = 0
    func step(_ step: TestServer.Step) {
      if waits[number % waits.count] {
        let signal = TestServer.Signal()
        signals.append(signal)
        steps.append(.wait(signal))
      }
      number += 1
      steps.append(step)
    }
    for hop in 0..<redirects {
      steps.append(.expectRequest)
      step(.send("HTTP/1.1 307 Go\r\nContent-Length: 0\r\nLocation: /\(hop + 1)\r\n\r\n"))
    }
    steps.append(.expectRequest)
    let length =
      isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(body.utf8.count + (end == .whole ? 0 : 1))"
    step(.send("HTTP/1.1 \(status) Word\r\nContent-Type: text/plain\r\n\(length)\r\n\r\n"))
    for piece in pieces {
      step(.send(isChunked ? "\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n" : piece))
    }
    switch end {
    case .whole: if isChunked { step(.send("0\r\n\r\n")) }
    case .cut: step(.close)
    case .reset: step(.reset)
    }
    steps.append(.hang)
    return TestServer.Script(steps)
  }

  // MARK: - The order of calls

  /// The violations of the documented order, or an empty array.
  func problems(of log: [String]) -> [String] {
    var problems: [String] = []
    func check(_ isGood: Bool, _ problem: String) { if !isGood { problems.append(problem) } }
    func count(_ word: String) -> Int { log.count { $0.hasPrefix(word) } }
    func first(_ word: String) -> Int { log.firstIndex { $0.hasPrefix(word) } ?? .max }
    func last(_ word: String) -> Int { log.lastIndex { $0.hasPrefix(word) } ?? -1 }

    check(log.first == "create" && count("create") == 1, "made once, and first")
    check(count("end") + count("failure") == 1, "one completion")
    check(count("metrics") == 1, "metrics once")
    check(count("invalid") == 1 && log.last == "invalid", "invalid once, and last")
    check(max(last("end"), last("failure")) == log.count - 2, "completion last of the task")
    check(last("metrics") == log.count - 3, "metrics before completion")
    check(count("redirect") <= redirects, "not more redirections than there are")
    check(last("redirect") < first("response"), "redirections before the response")
    check(count("response") <= 1, "one response")
    check(last("response") < first("data"), "response before data")
    check(count("become") <= 1 && first("become") > last("response"), "becomes something else after the response")
    check(count("become") == 0 || count("data") == 0, "no data for a task that is a download")
    check(count("become") == 1 || kind == .download || count("written") == 0, "written by downloads")
    check(first("written") > first("become") || count("become") == 0, "written after the download's beginning")
    check(count("file") <= 1 && last("written") < first("file"), "file after all was written")
    check(count("file") == 0 || count("end") == 1, "file only on success")
    check(last("sent") < min(first("end"), first("failure")), "sent before the end")
    let sent = log.filter { $0.hasPrefix("sent") }.compactMap { Int($0.dropFirst(5)) }
    check(sent == sent.sorted(), "sent grows")
    let data = log.filter { $0.hasPrefix("data ") }.map { $0.dropFirst(5) }.joined()
    check(body.hasPrefix(data), "data is what was sent, in order")
    if count("end") == 1 {
      check(end == .whole || redirectRefused != nil, "a body that is cut off is no success")
      if let file = log.first(where: { $0.hasPrefix("file ") }) {
        check(file.dropFirst(5) == body || redirectRefused != nil, "the file is whole")
      } else {
        check(kind != .download, "a download ends with a file")
        check(count("response") == 1, "success has a response")
        check(count("become") == 0, "what has become a download ends with a file")
        check(data == body || redirectRefused != nil, "data is whole")
      }
    }
    return problems
  }
}
