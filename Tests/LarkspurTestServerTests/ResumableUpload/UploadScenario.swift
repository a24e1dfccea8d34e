import LarkspurBytes
import LarkspurHTTP
import LarkspurTestServer
import TestKit

/// A client's machine and a server's ledger in memory, with a network between them that breaks at any byte.
struct UploadScenario {
  enum Outcome: Hashable {
    case delivered(status: Int)
    /// The upload is complete, and its response was lost.
    case learned
    case failed(UploadFailure)
    /// The number of requests was too great.
    case endless
  }

  /// What the network does to one request.
  struct FaultProfile {
    /// The number of bytes of the content after which the connection breaks, or `nil` for none.
    var cut: Int?
    /// The number of bytes that the connection has taken beyond the cut. They are lost, or come too late.
    var lost = 0
    var losesInterim = false
    var losesResponse = false

    static let none = FaultProfile()
  }

  static let origin = "http://h"
  static let requestsMax = 5000

  let file: [UInt8]
  var ledger: UploadLedger
  var machine: ResumableUploadMachine
  var now = 1_000_000.0
  private(set) var requestCount = 0
  /// A request that has broken off for the client, and bytes of it that the network still has.
  private var late: (exchange: UploadLedger.Exchange, bytes: ArraySlice<UInt8>)?
  /// Returns the number of bytes of the next piece of content.
  var pieceSize: (inout SeededGenerator) -> Int = { .random(in: 1...20, using: &$0) }

  init(file: [UInt8], _ server: TestServer.ResumableUpload, _ settings: ResumableUploadMachine.Settings) {
    self.file = file
    ledger = UploadLedger(path: "/files", server)
    machine = ResumableUploadMachine(settings: settings, url: Self.origin + "/files", length: file.count)
  }

  /// Runs the upload to its end.
  ///
  /// - Parameters:
  ///   - faults: Called for each request.
  ///   - isPausing: Whether the program is stopped before the next request, and continues with its resume data.
  mutating func run(
    _ random: inout SeededGenerator, faults: (UploadRequest, inout SeededGenerator) -> FaultProfile,
    isPausing: (inout SeededGenerator) -> Bool = { _ in false }
  ) -> Outcome {
    var action = machine.start(now: now)
    var status = 0
    while requestCount < Self.requestsMax {
      if isPausing(&random), machine.point != nil, machine.state != .cancelling, machine.state != .closed {
        action = restart() ?? action
      }
      switch action {
      case .send(let request):
        requestCount += 1
        action = send(request, faults(request, &random), &random, &status)
      case .wait(let delay):
        now += Double(delay.components.seconds) + 1
        action = machine.waited(now: now)
      case .deliver: return .delivered(status: status)
      case .deliverRetrieval: return .learned
      case .fail(let failure): return .failed(failure)
      // None fits here: nothing is in flight, the program does not cancel, and questions are answered.
      case .proceed, .finish, .ask: return .endless
      }
    }
    return .endless
  }

  /// Continues in a new machine from resume data, as another process does.
  private mutating func restart() -> ResumableUploadMachine.Action? {
    guard let point = machine.pause() else { return nil }
    let identity = FileStatus(
      size: file.count, modificationSeconds: 5, modificationNanoseconds: 6, inode: 7)
    let data = UploadResumeData(
      point: point, url: Self.origin + "/files", method: "POST", fields: [], path: "/f", file: identity)
    guard let bytes = data.encoded(), let decoded = try? UploadResumeData.decoded(bytes),
      decoded.file == identity
    else { return nil }
    machine = ResumableUploadMachine(settings: machine.settings, url: decoded.url, point: decoded.point)
    return refusing { [now] in $0.start(now: now) }
  }

  /// Passes a fact to the machine, and refuses each upload resource of another origin that it asks about.
  private mutating func refusing(
    _ fact: (inout ResumableUploadMachine) -> ResumableUploadMachine.Action
  ) -> ResumableUploadMachine.Action {
    var action = fact(&machine)
    for _ in 0..<Self.requestsMax {
      guard case .ask(let location) = action else { break }
      machine.answered(location, isAgreed: false)
      action = fact(&machine)
    }
    return action
  }

  // MARK: - One request

  /// Sends a request without faults.
  mutating func send(_ request: UploadRequest, _ random: inout SeededGenerator) -> ResumableUploadMachine.Action {
    var status = 0
    return send(request, .none, &random, &status)
  }

  private mutating func send(
    _ request: UploadRequest, _ faults: FaultProfile, _ random: inout SeededGenerator, _ status: inout Int
  ) -> ResumableUploadMachine.Action {
    let url = request.url ?? Self.origin + "/files"
    var fields = TestServer.Fields(request.fields.map { TestServer.Field($0.name, $0.value) })
    if request.kind == .creation || request.kind == .append {
      fields.add("Content-Length", String(request.content.count))
    }
    let path = String(url.dropFirst(Self.origin.count))
    let opening = ledger.open(UploadLedger.Head(method: request.method ?? "POST", path: path, fields: fields))
    if Bool.random(using: &random), var arriving = late.take() {
      _ = ledger.receive(arriving.bytes, &arriving.exchange)
    }
    switch opening {
    case .respond(let response):
      for interim in response.interim where !faults.losesInterim {
        if let action = inform(interim, url) { return action }
      }
      return respond(response, url, faults, &random, &status)
    case .receive(var exchange, let interim):
      for interim in interim where !faults.losesInterim {
        if let action = inform(interim, url) { return action }
      }
      return transfer(request, &exchange, url, faults, &random, &status)
    }
  }

  private mutating func transfer(
    _ request: UploadRequest, _ exchange: inout UploadLedger.Exchange, _ url: String, _ faults: FaultProfile,
    _ random: inout SeededGenerator, _ status: inout Int
  ) -> ResumableUploadMachine.Action {
    let content = Array(file[request.content])
    let arriving = min(faults.cut ?? .max, content.count)
    var offset = 0
    var piece: ArraySlice<UInt8> = []
    repeat {
      machine.sentContent(offset)
      switch ledger.receive(piece, &exchange) {
      case .proceed(let interim):
        for interim in interim {
          if let action = inform(interim, url) { return action }
        }
      case .refuse(let response): return respond(response, url, faults, &random, &status)
      case .end: return fail(&random)
      }
      if offset == arriving { break }
      piece = content[offset..<min(offset + max(pieceSize(&random), 1), arriving)]
      offset = piece.endIndex
    } while true
    guard faults.cut == nil else {
      let sent = min(offset + faults.lost, content.count)
      machine.sentContent(sent)
      late = (exchange, content[offset..<sent])
      return fail(&random)
    }
    switch ledger.finish(exchange) {
    case .respond(let response): return respond(response, url, faults, &random, &status)
    case .end: return fail(&random)
    }
  }

  private mutating func fail(_ random: inout SeededGenerator) -> ResumableUploadMachine.Action {
    let fraction = Double.random(in: 0...1, using: &random)
    return refusing { [now] in $0.failed(isFutile: false, now: now, fraction: fraction) }
  }

  /// - Returns: The action that ends the request in flight, or `nil` if it goes on.
  private mutating func inform(_ interim: TestServer.Interim, _ url: String) -> ResumableUploadMachine.Action? {
    let action = machine.informed(response(interim.status, interim.fields, url), now: now)
    return action == .proceed ? nil : action
  }

  private mutating func respond(
    _ response: TestServer.Response, _ url: String, _ faults: FaultProfile, _ random: inout SeededGenerator,
    _ status: inout Int
  ) -> ResumableUploadMachine.Action {
    if faults.losesResponse { return fail(&random) }
    status = response.status
    let facts = self.response(response.status, response.fields, url)
    let fraction = Double.random(in: 0...1, using: &random)
    return refusing { [now] in $0.responded(facts, now: now, fraction: fraction) }
  }

  private func response(_ status: Int, _ fields: TestServer.Fields, _ url: String) -> UploadResponse {
    UploadResponse(status: status, url: url, version: machine.settings.version, now: now) { fields.values($0) }
  }
}
