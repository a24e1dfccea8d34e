import LarkspurHTTP
import Testing

/// Upload resources of other origins: they are used by the owner's agreement only, and never deleted.
@Suite struct UploadOriginTests {
  typealias Machine = ResumableUploadMachine
  typealias Table = ResumableUploadMachineTests
  typealias Summary = ResumableUploadMachineTests.Summary

  private static let elsewhere = "http://other/account/42"

  /// The facts by which a server leads an upload to another origin.
  enum Lead: CaseIterable {
    case announcedAndBroken, announcedAndUnavailable, announcedAndContradicting, contradicting, partCreated
    case retrievalRedirected, retrievalRedirectedForGood, appendRedirected, resumed

    /// The action if the owner has agreed.
    var followed: Summary {
      switch self {
      case .announcedAndBroken, .announcedAndUnavailable, .announcedAndContradicting, .contradicting:
        .wait(.seconds(0.5))
      case .partCreated: .patch(elsewhere, 10..<100)
      case .retrievalRedirected, .retrievalRedirectedForGood, .resumed: .head(elsewhere)
      case .appendRedirected: .patch(elsewhere, 50..<100)
      }
    }

    /// The action if the owner has refused.
    var refused: Summary {
      switch self {
      case .announcedAndBroken: .fail(.connection)
      case .announcedAndUnavailable: .deliver
      case .announcedAndContradicting, .contradicting: .fail(.neverCompleted)
      case .partCreated: .fail(.noLocation)
      case .retrievalRedirected, .retrievalRedirectedForGood, .appendRedirected: .fail(.redirection)
      case .resumed: .fail(.otherOrigin)
      }
    }

    /// A machine before the last fact, and that fact.
    func situation() -> (Machine, @Sendable (inout Machine) -> Machine.Action) {
      func announced() -> Machine {
        var machine = Table.machine(in: .creating)
        #expect(machine.informed(Table.interim(location: elsewhere), now: 0) == .proceed)
        return machine
      }
      func answer(_ status: Int, _ edit: @escaping @Sendable (inout UploadResponse) -> Void = { _ in })
        -> @Sendable (inout Machine) -> Machine.Action
      {
        { $0.responded(Table.response(status, edit), now: 0, fraction: 0) }
      }
      switch self {
      case .announcedAndBroken: return (announced(), { $0.failed(isFutile: false, now: 0, fraction: 0) })
      case .announcedAndUnavailable: return (announced(), answer(503))
      case .announcedAndContradicting: return (announced(), answer(200) { $0.isComplete = false })
      case .contradicting:
        return (
          Table.machine(in: .creating),
          answer(200) { response in
            response.isComplete = false
            response.location = elsewhere
          }
        )
      case .partCreated:
        var settings = Machine.Settings()
        settings.knownLimits = UploadLimits(maxAppendSize: 10)
        var limits = UploadLimits()
        limits.maxAppendSize = 100
        return (
          Table.machine(in: .creating, settings),
          answer(201) { [limits] response in
            response.location = elsewhere
            response.limits = limits
          }
        )
      case .retrievalRedirected: return (Table.machine(in: .retrieving), answer(307) { $0.location = elsewhere })
      case .retrievalRedirectedForGood:
        return (Table.machine(in: .retrieving), answer(308) { $0.location = elsewhere })
      case .appendRedirected: return (Table.machine(in: .appending), answer(307) { $0.location = elsewhere })
      case .resumed:
        let point = UploadPoint(version: .interop8, resource: elsewhere, length: 100, sent: 60)
        return (Machine(url: "http://h/post", point: point), { $0.start(now: 0) })
      }
    }
  }

  @Test(arguments: Lead.allCases) func theOwnerIsAskedFirst(lead: Lead) {
    let (asking, fact) = lead.situation()
    var machine = asking
    let (state, point) = (machine.state, machine.point)
    // The question changes nothing, however often it is asked.
    for _ in 0..<2 { #expect(fact(&machine) == .ask(Self.elsewhere)) }
    #expect(machine.state == state && machine.point == point && machine.failureCount == asking.failureCount)
    machine.answered(Self.elsewhere, isAgreed: false)
    #expect(Summary(fact(&machine)) == lead.refused)
    #expect(machine.point?.resource != Self.elsewhere)

    machine = asking
    machine.answered(Self.elsewhere, isAgreed: true)
    let action = fact(&machine)
    #expect(Summary(action) == lead.followed)
    if case .send(let request) = action { #expect(request.leavesOrigin) }
    if lead != .retrievalRedirected, lead != .appendRedirected { #expect(machine.point?.resource == Self.elsewhere) }
  }

  /// No failure, and no wish of the owner, makes the machine delete a resource of another origin.
  @Test(arguments: [true, false]) func anotherOriginIsNeverDeleted(isAgreed: Bool) {
    let facts: [(@Sendable (inout Machine) -> Machine.Action, Summary)] = [
      ({ $0.informed(Table.interim(location: "http://h/u/2"), now: 0) }, .fail(.locationChanged)),
      ({ $0.informed(Table.interim(location: "http://third/u"), now: 0) }, .fail(.locationChanged)),
      ({ $0.fileChanged() }, .fail(.fileChanged)), ({ $0.cancel() }, .finish),
    ]
    for (fact, summary) in facts {
      var machine = Table.machine(in: .creating)
      _ = machine.informed(Table.interim(location: Self.elsewhere), now: 0)
      if isAgreed { machine.answered(Self.elsewhere, isAgreed: true) }
      #expect(Summary(fact(&machine)) == summary)
      #expect(machine.point == nil && machine.state == .closed)
    }
    var limited = Table.machine(in: .creating)
    if isAgreed { limited.answered(Self.elsewhere, isAgreed: true) }
    var response = Table.interim(location: Self.elsewhere, offset: 101)
    response.limits = UploadLimits(maxSize: 1)
    // What a resource says counts only if the resource may be used.
    #expect(
      Summary(limited.informed(response, now: 0)) == (isAgreed ? .fail(.limits(UploadLimits(maxSize: 1))) : .proceed))
    guard isAgreed else { return }
    var (machine, resume) = Lead.resumed.situation()
    machine.answered(Self.elsewhere, isAgreed: true)
    _ = resume(&machine)
    #expect(
      Summary(machine.responded(Table.state(204, nil, isComplete: false), now: 0, fraction: 0)) == .fail(.noOffset))
    #expect(machine.point == nil)
  }

  /// Another origin could otherwise choose what is requested, or deleted, with the program's credentials.
  @Test func anotherOriginDoesNotLeadBack() {
    for status in [307, 308] {
      var (machine, resume) = Lead.resumed.situation()
      machine.answered(Self.elsewhere, isAgreed: true)
      #expect(Summary(resume(&machine)) == .head(Self.elsewhere))
      let back = Table.response(status) { response in
        response.url = Self.elsewhere
        response.location = "http://h/account"
      }
      #expect(Summary(machine.responded(back, now: 0, fraction: 0)) == .fail(.redirection))
    }
  }

  /// An agreement is about one URL, and a refusal about all.
  @Test func agreementsAndRefusals() {
    var machine = Table.machine(in: .retrieving)
    func redirect(_ number: Int) -> Machine.Action {
      let response = Table.response(307) { response in
        if number > 0 { response.url = "http://other/\(number - 1)" }
        response.location = "http://other/\(number)"
      }
      return machine.responded(response, now: 0, fraction: 0)
    }
    for number in 0..<2 {
      #expect(redirect(number) == .ask("http://other/\(number)"))
      machine.answered("http://other/\(number)", isAgreed: true)
      #expect(Summary(redirect(number)) == .head("http://other/\(number)"))
    }
    #expect(redirect(2) == .ask("http://other/2"))
    machine.answered("http://other/2", isAgreed: false)
    var closed = machine
    #expect(redirect(3) == .fail(.redirection))
    // The resource stays, and so do its agreements.
    #expect(machine.point?.resource == Table.resource)
    let again = Table.response(307) { $0.location = "http://other/1" }
    #expect(Summary(closed.responded(again, now: 0, fraction: 0)) == .head("http://other/1"))
  }

  @Test func theNumberOfQuestions() {
    var machine = Table.machine(in: .retrieving)
    var count = 0
    while machine.state != .closed, count < 100 {
      let response = Table.response(307) { $0.location = "http://other/\(count)" }
      guard case .ask(let location) = machine.responded(response, now: 0, fraction: 0) else { break }
      count += 1
      machine.answered(location, isAgreed: true)
    }
    #expect(count == Machine.agreementsMax)
  }

  /// A request that is protected by TLS never leads to a resource that is not.
  @Test func nothingLeavesTLS() {
    for resource in ["http://h/u", "http://other/u", "ftp://h/u", "/u"] {
      let point = UploadPoint(version: .interop8, resource: resource, length: 100, sent: 60)
      var machine = Machine(url: "https://h/post", point: point)
      machine.answered(resource, isAgreed: true)
      #expect(machine.start(now: 0) == .fail(.otherOrigin) && machine.point == nil)
    }
    let point = UploadPoint(version: .interop8, resource: "https://h/u", length: 100, sent: 60)
    var machine = Machine(url: "https://h/post", point: point)
    _ = machine.start(now: 0)
    let response = Table.response(307) { response in
      response.url = "https://h/u"
      response.location = "http://h/u"
    }
    #expect(machine.responded(response, now: 0, fraction: 0) == .fail(.redirection))
  }

  /// A server that has had all bytes may have completed the upload: it does not start over.
  @Test func aRefusedResourceThatHadAllBytes() {
    let point = UploadPoint(version: .interop8, resource: Self.elsewhere, length: 100, acknowledged: 100, sent: 100)
    var machine = Machine(url: "http://h/post", point: point)
    machine.answered(Self.elsewhere, isAgreed: false)
    #expect(machine.start(now: 0) == .fail(.otherOrigin) && machine.point == point)
  }
}
