import LarkspurHTTP
import Testing

/// Decisions that the table of all facts does not show: series of requests, versions, limits and lifetimes.
@Suite struct ResumableUploadDecisionTests {
  typealias Machine = ResumableUploadMachine
  typealias Table = ResumableUploadMachineTests
  typealias Summary = ResumableUploadMachineTests.Summary

  static func respond(_ machine: inout Machine, _ response: UploadResponse) -> Summary {
    Summary(machine.responded(response, now: 0, fraction: 0))
  }

  static func point(_ version: ResumableUploadVersion = .interop8, acknowledged: Int = 0, sent: Int = 0) -> UploadPoint
  {
    UploadPoint(version: version, resource: Table.resource, length: 100, acknowledged: acknowledged, sent: sent)
  }

  /// A machine that waits for the response to HEAD.
  static func retrieving(_ point: UploadPoint, _ settings: Machine.Settings = Machine.Settings()) -> Machine {
    var machine = Machine(settings: settings, url: "http://h/post", point: point)
    #expect(Summary(machine.start(now: 0)) == .head(Table.resource))
    return machine
  }

  // MARK: - Failures

  @Test func failuresEndTheUploadUnlessBytesArrive() {
    var settings = Machine.Settings()
    settings.retry.failuresMax = 3
    var machine = Self.retrieving(Self.point(sent: 60), settings)
    for _ in 0..<2 {
      #expect(Self.respond(&machine, Table.response(503)) != .fail(.status(503)))
      #expect(Summary(machine.waited(now: 0)) == .head(Table.resource))
    }
    #expect(machine.failureCount == 2)
    #expect(Self.respond(&machine, Table.state(204, 1, isComplete: false)) == .patch(Table.resource, 1..<100))
    #expect(machine.failureCount == 0)
    // The offset stays, so that failures add up over HEAD and PATCH.
    for _ in 0..<2 {
      _ = machine.failed(isFutile: false, now: 0, fraction: 0)
      _ = machine.waited(now: 0)
      #expect(Self.respond(&machine, Table.state(204, 1, isComplete: false)) == .patch(Table.resource, 1..<100))
    }
    #expect(Self.respond(&machine, Table.response(500)) == .fail(.status(500)))
    // The upload can continue later.
    #expect(machine.point == Self.point(acknowledged: 1, sent: 60))
  }

  @Test func theLastResponseToACreationIsDelivered() {
    var settings = Machine.Settings()
    settings.retry.failuresMax = 1
    var machine = Table.machine(in: .announced, settings)
    #expect(Self.respond(&machine, Table.response(503)) == .deliver)
    #expect(machine.point == nil)
  }

  @Test func aConflictWithoutEndEnds() {
    var machine = Self.retrieving(Self.point(sent: 60))
    var heads = 0
    while machine.state != .closed, heads < 100 {
      heads += 1
      _ = Self.respond(&machine, Table.state(204, 30, isComplete: false))
      _ = Self.respond(&machine, Table.state(409, 30, isComplete: false))
      _ = machine.waited(now: 0)
    }
    #expect(heads == 8)
  }

  @Test func aServerThatNeverCompletesEnds() {
    var machine = Self.retrieving(Self.point(sent: 100))
    var heads = 0
    while machine.state != .closed, heads < 100 {
      heads += 1
      #expect(Self.respond(&machine, Table.state(204, 100, isComplete: false)) == .patch(Table.resource, 100..<100))
      _ = Self.respond(&machine, Table.response(200))
      _ = machine.waited(now: 0)
    }
    #expect(heads == 8)
  }

  @Test func redirectsEnd() {
    var machine = Self.retrieving(Self.point())
    for number in 1...5 {
      let url = "http://h/r/\(number)"
      #expect(Self.respond(&machine, Table.response(307) { $0.location = url }) == .head(url))
    }
    #expect(Self.respond(&machine, Table.response(307) { $0.location = "http://h/r/6" }) == .fail(.redirection))
    // A temporary redirection is not remembered, and a permanent one is.
    #expect(machine.point?.resource == Table.resource)
    machine = Self.retrieving(Self.point())
    _ = Self.respond(&machine, Table.response(308) { $0.location = "http://h/r/1" })
    #expect(machine.point?.resource == "http://h/r/1")
    #expect(Self.respond(&machine, Table.response(308)) == .fail(.redirection))
  }

  // MARK: - Offsets

  @Test func offsetsOfBothVersions() {
    for (offset, failure) in [
      (101, .offsetBeyondEnd(101)), (29, .offsetDecreased(29)), (61, .offsetBeyondSent(61)),
    ] as [(Int, UploadFailure)] {
      var machine = Self.retrieving(Self.point(.interop3, acknowledged: 30, sent: 60))
      #expect(Self.respond(&machine, Table.state(204, offset, isComplete: false)) == .delete(Table.resource))
      #expect(Self.respond(&machine, Table.response(405)) == .fail(failure))
      #expect(machine.point == nil)
    }
    // The latest draft lets the upload resource get bytes in other ways.
    var machine = Self.retrieving(Self.point(acknowledged: 30, sent: 60))
    #expect(Self.respond(&machine, Table.state(204, 61, isComplete: false)) == .patch(Table.resource, 61..<100))
  }

  @Test func progressIsAcknowledged() {
    var machine = Table.machine(in: .announced)
    #expect(machine.informed(Table.interim(offset: 60), now: 0) == .proceed && machine.acknowledged == 60)
    #expect(Summary(machine.informed(Table.interim(offset: 59), now: 0)) == .delete(Table.resource))
    #expect(Self.respond(&machine, Table.response(204)) == .fail(.offsetDecreased(59)))
  }

  // MARK: - Draft 01

  private static func creating3() -> Machine {
    var settings = Machine.Settings()
    settings.version = .interop3
    var machine = Machine(settings: settings, url: "http://h/post", length: 100)
    _ = machine.start(now: 0)
    #expect(machine.informed(Table.interim(version: 3, location: Table.resource), now: 0) == .proceed)
    machine.sentContent(100)
    return machine
  }

  @Test func draft01Creation() {
    var machine = Self.creating3()
    #expect(Self.respond(&machine, Table.state(201, 100, isComplete: nil)) == .deliver)
    machine = Self.creating3()
    #expect(Self.respond(&machine, Table.state(201, 50, isComplete: nil)) == .delete(Table.resource))
    machine = Self.creating3()
    #expect(Self.respond(&machine, Table.state(201, nil, isComplete: false)) == .wait(.seconds(0.5)))
    // Another version's 104 names nothing.
    machine = Machine(url: "http://h/post", length: 100)
    _ = machine.start(now: 0)
    #expect(machine.informed(Table.interim(version: 3, location: Table.resource), now: 0) == .proceed)
    #expect(machine.point == nil)
  }

  @Test func draft01Append() {
    func appending() -> Machine {
      var machine = Self.retrieving(Self.point(.interop3, sent: 60))
      #expect(Self.respond(&machine, Table.state(204, 50, isComplete: false)) == .patch(Table.resource, 50..<100))
      return machine
    }
    let outcomes: [(UploadResponse, Summary)] = [
      (Table.state(201, 100, isComplete: nil), .deliver), (Table.response(200), .deliver),
      (Table.state(201, 100, isComplete: true), .deliver),
      (Table.state(201, 99, isComplete: nil), .delete(Table.resource)),
      (Table.state(201, 100, isComplete: false), .wait(.seconds(0.5))), (Table.response(422), .deliver),
      (Table.response(404), .fail(.resourceGone(status: 404))), (Table.response(503), .wait(.seconds(0.5))),
    ]
    for (response, outcome) in outcomes {
      var machine = appending()
      #expect(Self.respond(&machine, response) == outcome)
    }
  }

  // MARK: - Draft 12 and later

  @Test(arguments: [ResumableUploadVersion.interop8, .interop9, .interop10])
  func conflicts(version: ResumableUploadVersion) {
    let isRecent = version != .interop8
    func appending() -> Machine {
      var machine = Self.retrieving(Self.point(version))
      _ = Self.respond(&machine, Table.state(204, 50, isComplete: false))
      return machine
    }
    var machine = appending()
    #expect(Self.respond(&machine, Table.state(409, 50, isComplete: false)) == .wait(.seconds(0.5)))
    machine = appending()
    #expect(Self.respond(&machine, Table.response(409)) == (isRecent ? .fail(.status(409)) : .wait(.seconds(0.5))))
    machine = Machine(settings: Self.settings(version), url: "http://h/post", length: 100)
    _ = machine.start(now: 0)
    _ = machine.informed(Table.interim(version: version.rawValue, location: Table.resource), now: 0)
    let conflict = Self.respond(&machine, Table.state(409, 50, isComplete: false))
    #expect(conflict == (isRecent ? .wait(.seconds(0.5)) : .deliver))
  }

  @Test(arguments: [ResumableUploadVersion.interop8, .interop9, .interop10])
  func advice(version: ResumableUploadVersion) {
    let isRecent = version != .interop8
    var limits = UploadLimits(minSize: 101, maxAge: 10)
    var machine = Self.retrieving(Self.point(version))
    let small = Self.respond(&machine, Table.state(204, 50, limits))
    #expect(small == (isRecent ? .patch(Table.resource, 50..<100) : .delete(Table.resource)))
    limits.minSize = nil
    machine = Self.retrieving(Self.point(version))
    _ = Self.respond(&machine, Table.state(204, 50, limits))
    _ = machine.failed(isFutile: false, now: 0, fraction: 0)
    #expect(Summary(machine.waited(now: 11)) == (isRecent ? .head(Table.resource) : .fail(.expired)))
  }

  @Test(arguments: [ResumableUploadVersion.interop8, .interop9, .interop10])
  func partsThatAreNotAcknowledged(version: ResumableUploadVersion) {
    var settings = Self.settings(version)
    settings.contentMax = 40
    func appending() -> Machine {
      var machine = Self.retrieving(Self.point(version), settings)
      _ = Self.respond(&machine, Table.state(204, 0, isComplete: false))
      return machine
    }
    var machine = appending()
    let next = Self.respond(&machine, Table.response(204))
    #expect(next == (version == .interop8 ? .patch(Table.resource, 40..<80) : .wait(.seconds(0.5))))
    machine = appending()
    let early = Self.respond(&machine, Table.state(400, nil, isComplete: true))
    #expect(early == (version == .interop8 ? .fail(.completedTooEarly) : .deliver))
    #expect(machine.point == nil)
  }

  static func settings(_ version: ResumableUploadVersion) -> Machine.Settings {
    var settings = Machine.Settings()
    settings.version = version
    return settings
  }

  // MARK: - A response that breaks off

  /// The point of a completed upload stays, so that a lost response does not cost a second upload.
  @Test(arguments: ResumableUploadVersion.allCases) func theUploadIsComplete(version: ResumableUploadVersion) {
    var machine = Self.retrieving(Self.point(version, sent: 100))
    _ = Self.respond(&machine, Table.state(204, 50, isComplete: false))
    #expect(Self.respond(&machine, Table.state(200, nil, isComplete: true)) == .deliver)
    let point = Self.point(version, acknowledged: 100, sent: 100)
    #expect(machine.point == point)
    // The resource may go with the upload.
    var next = Self.retrieving(point)
    #expect(Self.respond(&next, Table.response(404)) == .fail(.resourceGone(status: 404)))
    #expect(next.point == point)
    next = Self.retrieving(point)
    _ = Self.respond(&next, Table.state(204, 100, isComplete: nil))
    #expect(Self.respond(&next, Table.response(404)) == .fail(.resourceGone(status: 404)) && next.point == point)
  }

  /// The response is lost by which the server has completed the upload before its last byte.
  @Test(arguments: [ResumableUploadVersion.interop8, .interop9, .interop10])
  func anEarlyCompletionIsLost(version: ResumableUploadVersion) {
    var machine = Self.retrieving(Self.point(version, acknowledged: 30))
    let action = Self.respond(&machine, Table.state(204, 20, isComplete: true))
    #expect(action == (version == .interop8 ? .delete(Table.resource) : .deliverRetrieval))
  }

  // MARK: - Parts and limits

  @Test func parts() {
    var settings = Machine.Settings()
    settings.contentMax = 40
    var machine = Self.retrieving(Self.point(), settings)
    #expect(Self.respond(&machine, Table.state(204, 0, isComplete: false)) == .patch(Table.resource, 0..<40))
    #expect(Self.respond(&machine, Table.state(204, nil, isComplete: false)) == .patch(Table.resource, 40..<80))
    #expect(Self.respond(&machine, Table.response(204)) == .patch(Table.resource, 80..<100))
    #expect(Self.respond(&machine, Table.state(200, nil, isComplete: true)) == .deliver)
    machine = Self.retrieving(Self.point(), settings)
    _ = Self.respond(&machine, Table.state(204, 0, isComplete: false))
    #expect(Self.respond(&machine, Table.state(204, 39, isComplete: false)) == .delete(Table.resource))
    machine = Self.retrieving(Self.point(), settings)
    _ = Self.respond(&machine, Table.state(204, 0, isComplete: false))
    #expect(Self.respond(&machine, Table.state(200, nil, isComplete: true)) == .fail(.completedTooEarly))
  }

  @Test func theFirstPartOfAKnownServer() {
    var settings = Machine.Settings()
    settings.knownLimits = UploadLimits(maxAppendSize: 60)
    func created(_ response: UploadResponse) -> Summary {
      var machine = Machine(settings: settings, url: "http://h/post", length: 100)
      #expect(Summary(machine.start(now: 0)) == .create(0..<60))
      return Self.respond(&machine, response)
    }
    #expect(created(Table.response(201) { $0.location = Table.resource }) == .patch(Table.resource, 60..<100))
    #expect(created(Table.response(201)) == .fail(.noLocation))
    #expect(created(Table.response(201) { $0.location = "mailto:x" }) == .fail(.noLocation))
    #expect(created(Table.response(415)) == .deliver)
    settings.knownLimits = UploadLimits(maxSize: 99)
    var machine = Machine(settings: settings, url: "http://h/post", length: 100)
    #expect(machine.start(now: 0) == .fail(.limits(UploadLimits(maxSize: 99))))
  }

  @Test func limitsInTheAnnouncement() {
    func announced(_ limits: UploadLimits) -> (Machine, Summary) {
      var machine = Machine(url: "http://h/post", length: 100)
      _ = machine.start(now: 0)
      var response = Table.interim(location: Table.resource)
      response.limits = limits
      let action = machine.informed(response, now: 0)
      return (machine, Summary(action))
    }
    #expect(announced(UploadLimits(maxSize: 100, maxAppendSize: 100)).1 == .proceed)
    #expect(announced(UploadLimits(maxSize: 99)).1 == .delete(Table.resource))
    #expect(announced(UploadLimits(minSize: 101)).1 == .delete(Table.resource))
    // The creation is too large: the rest goes in smaller requests.
    var (machine, action) = announced(UploadLimits(maxAppendSize: 30))
    #expect(action == .head(Table.resource))
    #expect(Self.respond(&machine, Table.state(204, 20, isComplete: false)) == .patch(Table.resource, 20..<50))
    (machine, action) = announced(UploadLimits(maxAppendSize: 30, minAppendSize: 40))
    #expect(Self.respond(&machine, Table.state(204, 20, isComplete: false)) == .delete(Table.resource))
  }

  @Test func limitsThatFallWithoutEnd() {
    var machine = Machine(url: "http://h/post", length: 100)
    _ = machine.start(now: 0)
    var creations = 0
    for limit in (1..<100).reversed() {
      let action = Self.respond(&machine, Table.response(413) { $0.limits = UploadLimits(maxAppendSize: limit) })
      guard case .create(let content) = action else {
        #expect(action == .deliver)
        break
      }
      #expect(content == 0..<limit)
      creations += 1
    }
    #expect(creations == Machine.reductionsMax)
  }

  // MARK: - Lifetimes

  @Test func theLifetimeOfTheResource() {
    var machine = Machine(url: "http://h/post", length: 100)
    _ = machine.start(now: 1000)
    var response = Table.interim(location: Table.resource)
    response.limits = UploadLimits(maxAge: 10)
    #expect(machine.informed(response, now: 1000) == .proceed && machine.point?.expiry == 1010)
    #expect(Summary(machine.failed(isFutile: false, now: 1009, fraction: 0)) == .wait(.seconds(0.5)))
    #expect(machine.waited(now: 1010) == .fail(.expired) && machine.point == nil)
    machine = Machine(url: "http://h/post", length: 100)
    _ = machine.start(now: 1000)
    _ = machine.informed(response, now: 1000)
    #expect(machine.failed(isFutile: false, now: 1009.5, fraction: 0) == .fail(.expired))
    var point = Self.point()
    point.expiry = 5
    machine = Machine(url: "http://h/post", point: point)
    #expect(machine.start(now: 5) == .fail(.expired))
  }

  // MARK: - URLs

  @Test func originsAndDowngrades() {
    for (location, isKnown, leaves) in [
      ("https://h/u", true, false), ("https://H:443/u", true, false), ("https://user@h/u", true, false),
      ("https://h:444/u", true, true), ("https://other/u", true, true), ("http://h/u", false, false),
      ("ftp://h/u", false, false), ("https:///u", false, false), ("/u", false, false),
    ] {
      var machine = Machine(url: "https://h/post", length: 100)
      _ = machine.start(now: 0)
      var response = Table.interim(location: location)
      response.url = "https://h/post"
      #expect(machine.informed(response, now: 0) == .proceed)
      #expect((machine.point != nil) == isKnown, "\(location)")
      guard isKnown else { continue }
      let isAsked = machine.failed(isFutile: false, now: 0, fraction: 0) == .ask(location)
      #expect(isAsked == leaves, "\(location)")
    }
  }

  @Test func theSizeOfTheRepresentation() {
    var machine = Machine(url: "http://h/post", length: StructuredItem.integerMax + 1)
    guard case .send(let request) = machine.start(now: 0) else {
      Issue.record("no creation")
      return
    }
    #expect(request.fields.isEmpty)
    #expect(machine.informed(Table.interim(location: Table.resource), now: 0) == .proceed && machine.point == nil)
    var empty = Machine(url: "http://h/post", length: 0)
    #expect(Summary(empty.start(now: 0)) == .create(0..<0))
    _ = empty.informed(Table.interim(location: Table.resource), now: 0)
    _ = empty.failed(isFutile: false, now: 0, fraction: 0)
    _ = empty.waited(now: 0)
    #expect(Self.respond(&empty, Table.state(204, 0, isComplete: false)) == .patch(Table.resource, 0..<0))
    #expect(Self.respond(&empty, Table.state(200, nil, isComplete: true)) == .deliver)
  }

  @Test func pauseAndContinue() {
    var machine = Table.machine(in: .appending)
    let point = machine.pause()
    #expect(point == Self.point(acknowledged: 50, sent: 60) && machine.state == .closed)
    #expect(machine.pause() == nil && machine.start(now: 0) == .finish)
    var idle = Table.machine(in: .creating)
    #expect(idle.pause() == nil && idle.state == .closed)
  }
}
