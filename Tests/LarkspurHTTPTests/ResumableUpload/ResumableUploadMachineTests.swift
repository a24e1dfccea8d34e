import LarkspurHTTP
import TestKit
import Testing

/// A table of every fact in every situation, for the latest version of the protocol.
@Suite struct ResumableUploadMachineTests {
  typealias Machine = ResumableUploadMachine

  /// A state, and for `creating` whether a 104 has named the upload resource. The representation has 100 bytes, 60 have
  /// been sent, and the server has acknowledged 30, or 50 while appending.
  enum Situation: CaseIterable {
    case idle, creating, announced, retrieving, appending, waiting, cancelling, closed

    var state: Machine.State {
      switch self {
      case .idle: .idle
      case .creating, .announced: .creating
      case .retrieving: .retrieving
      case .appending: .appending
      case .waiting: .waiting
      case .cancelling: .cancelling
      case .closed: .closed
      }
    }

    var way: [Fact] {
      switch self {
      case .idle: []
      case .creating: [.start]
      case .announced: [.start, .announced, .sent, .progress30]
      case .waiting: Situation.announced.way + [.failed]
      case .retrieving: Situation.waiting.way + [.waited]
      case .appending: Situation.retrieving.way + [.offset50]
      case .cancelling: Situation.announced.way + [.cancel]
      case .closed: [.cancel]
      }
    }
  }

  enum Fact: CaseIterable {
    case start, waited, failed, failedFutilely, fileChanged, cancel, pause, sent
    // Interim responses.
    case announced, announcedElsewhere, progress30, progress101, earlyHints, wrongVersion, noVersion
    // Final responses.
    case ok, okComplete, createdIncomplete, offset50, offset100Complete, offset50Complete, offset101, offset10
    case otherLength, unavailable, forbidden, forbiddenComplete, notFound, gone, conflict, tooLarge, movedTo
  }

  /// An action without the fields of its request.
  enum Summary: Hashable {
    case nothing, create(Range<Int>), head(String?), patch(String?, Range<Int>), delete(String?)
    case ask(String), wait(Duration), proceed, deliver, deliverRetrieval, finish, fail(UploadFailure)

    init(_ action: Machine.Action?) {
      switch action {
      case .send(let request):
        switch request.kind {
        case .creation: self = .create(request.content)
        case .offsetRetrieval: self = .head(request.url)
        case .append: self = .patch(request.url, request.content)
        case .cancellation: self = .delete(request.url)
        }
      case .ask(let location): self = .ask(location)
      case .wait(let delay): self = .wait(delay)
      case .proceed: self = .proceed
      case .deliver: self = .deliver
      case .deliverRetrieval: self = .deliverRetrieval
      case .finish: self = .finish
      case .fail(let failure): self = .fail(failure)
      case nil: self = .nothing
      }
    }
  }

  static let resource = "http://h/u/1"

  static func response(_ status: Int, _ edit: (inout UploadResponse) -> Void = { _ in }) -> UploadResponse {
    var response = UploadResponse(status: status, url: "http://h/post")
    edit(&response)
    return response
  }

  static func interim(_ status: Int = 104, version: Int? = 8, location: String? = nil, offset: Int? = nil)
    -> UploadResponse
  {
    response(status) { response in
      response.interopVersion = version
      response.location = location
      response.offset = offset
    }
  }

  static func state(_ status: Int, _ offset: Int?, isComplete: Bool?) -> UploadResponse {
    response(status) { response in
      response.offset = offset
      response.isComplete = isComplete
    }
  }

  static func state(_ status: Int, _ offset: Int, _ limits: UploadLimits) -> UploadResponse {
    response(status) { response in
      response.offset = offset
      response.limits = limits
    }
  }

  static func apply(_ fact: Fact, to machine: inout Machine, fraction: Double = 0) -> Machine.Action? {
    func informed(_ response: UploadResponse) -> Machine.Action { machine.informed(response, now: 0) }
    func responded(_ response: UploadResponse) -> Machine.Action {
      machine.responded(response, now: 0, fraction: fraction)
    }
    switch fact {
    case .start: return machine.start(now: 0)
    case .waited: return machine.waited(now: 0)
    case .failed: return machine.failed(isFutile: false, now: 0, fraction: fraction)
    case .failedFutilely: return machine.failed(isFutile: true, now: 0, fraction: fraction)
    case .fileChanged: return machine.fileChanged()
    case .cancel: return machine.cancel()
    case .pause:
      _ = machine.pause()
      return nil
    case .sent:
      machine.sentContent(60)
      return nil
    case .announced: return informed(interim(location: resource))
    case .announcedElsewhere: return informed(interim(location: "http://h/u/2"))
    case .progress30: return informed(interim(offset: 30))
    case .progress101: return informed(interim(offset: 101))
    case .earlyHints: return informed(interim(103, location: "http://h/u/2"))
    case .wrongVersion: return informed(interim(version: 3, location: "http://h/u/2"))
    case .noVersion: return informed(interim(version: nil, location: "http://h/u/2"))
    case .ok: return responded(response(200))
    case .okComplete: return responded(state(200, nil, isComplete: true))
    case .createdIncomplete: return responded(state(201, nil, isComplete: false))
    case .offset50: return responded(state(204, 50, isComplete: false))
    case .offset100Complete: return responded(state(204, 100, isComplete: true))
    case .offset50Complete: return responded(state(204, 50, isComplete: true))
    case .offset101: return responded(state(204, 101, isComplete: false))
    case .offset10: return responded(state(204, 10, isComplete: false))
    case .otherLength:
      return responded(
        response(204) { response in
          response.offset = 50
          response.length = 99
          response.isComplete = false
        })
    case .unavailable: return responded(response(503))
    case .forbidden: return responded(response(403))
    case .forbiddenComplete: return responded(state(403, nil, isComplete: true))
    case .notFound: return responded(response(404))
    case .gone: return responded(response(410))
    case .conflict: return responded(state(409, 55, isComplete: false))
    case .tooLarge: return responded(response(413) { $0.limits = UploadLimits(maxAppendSize: 10) })
    case .movedTo: return responded(response(308) { $0.location = "http://h/u/2" })
    }
  }

  static func machine(in situation: Situation, _ settings: Machine.Settings = Machine.Settings()) -> Machine {
    var machine = Machine(settings: settings, url: "http://h/post", length: 100)
    for fact in situation.way { _ = apply(fact, to: &machine) }
    return machine
  }

  struct Outcome: Hashable {
    var action: Summary
    var state: Machine.State

    init(_ action: Summary, _ state: Machine.State) {
      self.action = action
      self.state = state
    }
  }

  /// The outcome of each fact that fits a situation. All others change nothing, and answer `proceed`, or `finish` if
  /// the machine is closed.
  static let fitting: [Situation: [Fact: Outcome]] = {
    let deliver = Outcome(.deliver, .closed)
    let delete = Outcome(.delete(resource), .cancelling)
    let wait = Outcome(.wait(.seconds(0.5)), .waiting)
    // While retrieving, the request before has failed, too.
    let secondWait = Outcome(.wait(.seconds(1)), .waiting)
    let nothing = { (state: Machine.State) in Outcome(.nothing, state) }
    func fail(_ failure: UploadFailure) -> Outcome { Outcome(.fail(failure), .closed) }
    let contradiction = fail(.neverCompleted)
    let over = Outcome(.finish, .closed)
    var creating: [Fact: Outcome] = [
      .failed: fail(.connection), .failedFutilely: fail(.connection), .fileChanged: fail(.fileChanged), .cancel: over,
      .tooLarge: Outcome(.create(0..<10), .creating), .createdIncomplete: contradiction, .offset50: contradiction,
      .offset101: contradiction, .offset10: contradiction, .otherLength: contradiction,
    ]
    var announced: [Fact: Outcome] = [
      .failed: wait, .failedFutilely: fail(.connection), .fileChanged: delete, .cancel: delete,
      .announcedElsewhere: delete, .progress101: delete, .createdIncomplete: wait, .offset50: wait, .offset101: wait,
      .offset10: wait, .otherLength: wait, .unavailable: wait, .tooLarge: Outcome(.head(resource), .retrieving),
    ]
    let delivered: [Fact] = [
      .ok, .okComplete, .offset100Complete, .offset50Complete, .unavailable, .forbidden, .forbiddenComplete, .notFound,
      .gone, .conflict, .movedTo,
    ]
    for fact in delivered {
      creating[fact] = creating[fact] ?? deliver
      announced[fact] = announced[fact] ?? deliver
    }
    let retrieving: [Fact: Outcome] = [
      .failed: secondWait, .failedFutilely: fail(.connection), .fileChanged: delete, .cancel: delete, .ok: delete,
      .okComplete: delete, .createdIncomplete: delete, .offset50: Outcome(.patch(resource, 50..<100), .appending),
      .offset100Complete: Outcome(.deliverRetrieval, .closed), .offset50Complete: fail(.completedTooEarly),
      .offset101: delete, .offset10: delete, .otherLength: delete, .unavailable: secondWait,
      .forbidden: fail(.status(403)),
      .forbiddenComplete: fail(.status(403)), .notFound: fail(.resourceGone(status: 404)),
      .gone: fail(.resourceGone(status: 410)), .conflict: fail(.status(409)), .tooLarge: fail(.status(413)),
      .movedTo: Outcome(.head("http://h/u/2"), .retrieving),
    ]
    let appending: [Fact: Outcome] = [
      .failed: wait, .failedFutilely: fail(.connection), .fileChanged: delete, .cancel: delete, .progress30: delete,
      .progress101: delete, .ok: wait, .okComplete: deliver, .createdIncomplete: wait, .offset50: wait,
      .offset100Complete: deliver, .offset50Complete: deliver, .offset101: wait, .offset10: wait, .otherLength: wait,
      .unavailable: wait, .forbidden: fail(.status(403)), .forbiddenComplete: deliver,
      .notFound: fail(.resourceGone(status: 404)), .gone: fail(.resourceGone(status: 410)), .conflict: wait,
      .tooLarge: Outcome(.head(resource), .retrieving), .movedTo: Outcome(.patch("http://h/u/2", 50..<100), .appending),
    ]
    var cancelling: [Fact: Outcome] = [.failed: over, .failedFutilely: over]
    for fact in delivered + [.createdIncomplete, .offset50, .offset101, .offset10, .otherLength, .tooLarge] {
      cancelling[fact] = over
    }
    var table: [Situation: [Fact: Outcome]] = [
      .idle: [.start: Outcome(.create(0..<100), .creating), .fileChanged: fail(.fileChanged), .cancel: over],
      .creating: creating, .announced: announced, .retrieving: retrieving, .appending: appending,
      .waiting: [.waited: Outcome(.head(resource), .retrieving), .fileChanged: delete, .cancel: delete],
      .cancelling: cancelling, .closed: [:],
    ]
    for situation in Situation.allCases {
      table[situation]?[.sent] = nothing(situation.state)
      table[situation]?[.pause] = nothing(situation == .cancelling ? .cancelling : .closed)
    }
    return table
  }()

  @Test(arguments: Situation.allCases, Fact.allCases) func everyFactInEverySituation(situation: Situation, fact: Fact) {
    var machine = Self.machine(in: situation)
    #expect(machine.state == situation.state)
    let action = Self.apply(fact, to: &machine)
    let unfitting = Outcome(situation == .closed ? .finish : .proceed, situation.state)
    #expect(Outcome(Summary(action), machine.state) == Self.fitting[situation]?[fact] ?? unfitting)
  }

  /// Whatever happens, a closed machine stays closed, an action fits the state, and content lies in the representation.
  @Test func randomFacts() {
    var random = SeededGenerator(for: "ResumableUploadMachineTests.randomFacts")
    for _ in 0..<3000 {
      var settings = Machine.Settings()
      settings.version = .random(in: &random)
      settings.retry.failuresMax = Bool.random(using: &random) ? nil : .random(in: 0...4, using: &random)
      var machine = Machine(settings: settings, url: "http://h/post", length: Bool.random(using: &random) ? 100 : 0)
      for _ in 0..<40 {
        let wasClosed = machine.state == .closed
        guard let fact = Fact.allCases.randomElement(using: &random) else { continue }
        let action = Self.apply(fact, to: &machine, fraction: .random(in: 0...1, using: &random))
        if wasClosed { #expect(machine.state == .closed && (action == nil || action == .finish)) }
        switch action {
        case .send(let request):
          let states: [UploadRequest.Kind: Machine.State] = [
            .creation: .creating, .offsetRetrieval: .retrieving, .append: .appending, .cancellation: .cancelling,
          ]
          #expect(machine.state == states[request.kind])
          #expect(request.content.lowerBound >= 0 && request.content.upperBound <= 100)
        case .wait(let delay): #expect(machine.state == .waiting && .seconds(0.5)...Duration.seconds(60) ~= delay)
        case .deliver, .deliverRetrieval, .fail: #expect(machine.state == .closed)
        case .proceed: #expect(machine.state != .closed)
        case .ask: Issue.record("no fact leads to another origin")
        case .finish, nil: break
        }
        if let point = machine.point {
          #expect(0...point.length ~= point.acknowledged && 0...point.length ~= point.sent)
        }
      }
    }
  }
}

extension ResumableUploadVersion {
  static func random(in random: inout SeededGenerator) -> Self { allCases.randomElement(using: &random) ?? .interop8 }
}
