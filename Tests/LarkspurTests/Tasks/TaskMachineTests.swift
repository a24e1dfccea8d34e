import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Tests every state of `TaskMachine` with every fact.
@Suite struct TaskMachineTests {
  enum State: CaseIterable { case loading, redirecting, authenticating, over }

  enum Fact: CaseIterable {
    case success, unauthorized, proxyUnauthorized, redirect, badRedirect, foreignRedirect, redirectWithoutPlace
    case protocolRedirect, protocolRedirectWithoutResponse
    case redirectionAccepted, redirectionRefused, credentialGiven, credentialRefused
  }

  /// The kind of a step, without its values.
  enum Outcome: Equatable {
    case load, askRedirection, askCredential
    case deliver(Int)
    case fail(URLError.Code)
  }

  private static let url = "http://a.example/start"

  static func response(_ status: Int, _ fields: [String: String] = [:], url: String = url) throws -> HTTPURLResponse {
    let url = try #require(URL(string: url))
    return try #require(HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields))
  }

  static func request(_ url: String = url) throws -> URLRequest { URLRequest(url: try #require(URL(string: url))) }

  private static func machine(in state: State) throws -> TaskMachine {
    var machine = TaskMachine(try request())
    switch state {
    case .loading: break
    case .redirecting: _ = machine.responseReceived(try response(307, ["Location": "/other"]))
    case .authenticating: _ = machine.responseReceived(try response(401))
    case .over: _ = machine.responseReceived(try response(204))
    }
    return machine
  }

  private static func apply(_ fact: Fact, to machine: inout TaskMachine) throws -> TaskMachine.Step {
    switch fact {
    case .success: machine.responseReceived(try response(200))
    case .unauthorized: machine.responseReceived(try response(401))
    case .proxyUnauthorized: machine.responseReceived(try response(407))
    case .redirect: machine.responseReceived(try response(302, ["Location": "/next"]))
    case .badRedirect: machine.responseReceived(try response(302, ["Location": "http://[broken/"]))
    case .foreignRedirect: machine.responseReceived(try response(302, ["Location": "file:///etc/passwd"]))
    case .redirectWithoutPlace: machine.responseReceived(try response(302))
    case .protocolRedirect:
      machine.redirected(by: try response(302), to: try request("http://a.example/next"))
    case .protocolRedirectWithoutResponse:
      machine.redirected(by: nil, to: try request("http://a.example/next"))
    case .redirectionAccepted: machine.redirectionAnswered(try request("http://a.example/next"))
    case .redirectionRefused: machine.redirectionAnswered(nil)
    case .credentialGiven: machine.credentialGiven()
    case .credentialRefused: machine.credentialRefused()
    }
  }

  private static func outcome(_ step: TaskMachine.Step) -> Outcome {
    switch step {
    case .load: .load
    case .askRedirection: .askRedirection
    case .askCredential: .askCredential
    case .deliver(let response): .deliver(response.statusCode)
    case .fail(let error): .fail(error.code)
    }
  }

  private static func expected(_ state: State, _ fact: Fact) -> Outcome {
    switch (state, fact) {
    // A response counts in every state.
    case (_, .success): .deliver(200)
    case (_, .unauthorized), (_, .proxyUnauthorized): .askCredential
    // A redirection is proposed in any case. Whether its target can be loaded is checked when the load starts.
    case (_, .redirect), (_, .badRedirect), (_, .foreignRedirect), (_, .protocolRedirect): .askRedirection
    // Without a response there is nothing to ask a delegate about.
    case (_, .protocolRedirectWithoutResponse): .load
    case (_, .redirectWithoutPlace): .deliver(302)
    // An answer counts only in the state that asks for it.
    case (.redirecting, .redirectionAccepted): .load
    case (.redirecting, .redirectionRefused): .deliver(307)
    case (.authenticating, .credentialGiven): .load
    case (.authenticating, .credentialRefused): .deliver(401)
    case (_, .redirectionAccepted), (_, .redirectionRefused), (_, .credentialGiven), (_, .credentialRefused):
      .fail(.unknown)
    }
  }

  @Test(arguments: State.allCases, Fact.allCases)
  func everyStateKnowsEveryFact(state: State, fact: Fact) throws {
    var machine = try Self.machine(in: state)
    let step = try Self.apply(fact, to: &machine)
    #expect(Self.outcome(step) == Self.expected(state, fact))
    // The redirection counts only if the delegate accepted it when asked, or if there was nothing to ask.
    let isFollowed =
      state == .redirecting && fact == .redirectionAccepted || fact == .protocolRedirectWithoutResponse
    #expect(machine.redirectCount == (isFollowed ? 1 : 0))
    #expect(machine.request.url?.path == (isFollowed ? "/next" : "/start"))
  }

  private static let answers: [Fact] = [
    .redirectionAccepted, .redirectionRefused, .credentialGiven, .credentialRefused,
  ]

  /// A second answer to one question fails the task.
  @Test(arguments: answers, answers)
  func noQuestionIsAnsweredTwice(first: Fact, second: Fact) throws {
    for state in State.allCases {
      var machine = try Self.machine(in: state)
      _ = try Self.apply(first, to: &machine)
      guard case .fail(let error) = try Self.apply(second, to: &machine) else {
        // An answer that does not fit the question fails the task, too.
        Issue.record("\(state): \(second) after \(first)")
        continue
      }
      #expect(error.code == .unknown)
    }
  }

  @Test func twentyRedirectionsAreFollowedAndNoMore() throws {
    #expect(RedirectPolicy.countMax == 20)
    var machine = TaskMachine(try Self.request())
    for number in 1...20 {
      let step = machine.responseReceived(try Self.response(302, ["Location": "/\(number)"]))
      guard case .askRedirection(_, let next) = step else {
        Issue.record("number \(number) is not followed")
        return
      }
      guard case .load = machine.redirectionAnswered(next) else {
        Issue.record("number \(number) is not loaded")
        return
      }
    }
    #expect(machine.redirectCount == 20)
    #expect(machine.request.url?.path == "/20")
    // The delegate is not asked about the redirection beyond the limit.
    guard case .fail(let error) = machine.responseReceived(try Self.response(302, ["Location": "/21"])) else {
      Issue.record("number 21 is proposed")
      return
    }
    #expect(error.code == .httpTooManyRedirects && error.failingURL?.path == "/20")
  }

  @Test func aProtocolIsFollowedTwentyTimesAndNoMore() throws {
    var machine = TaskMachine(try Self.request())
    for number in 1...20 {
      guard case .load = machine.redirected(by: nil, to: try Self.request("http://a.example/\(number)")) else {
        Issue.record("number \(number) is not loaded")
        return
      }
    }
    for response in [nil, try Self.response(302)] {
      guard case .fail(let error) = machine.redirected(by: response, to: try Self.request()) else {
        Issue.record("number 21 is proposed or followed")
        return
      }
      #expect(error.code == .httpTooManyRedirects)
    }
  }

  @Test func challengesDoNotCountAsRedirections() throws {
    var machine = TaskMachine(try Self.request())
    for _ in 0..<30 {
      _ = machine.responseReceived(try Self.response(401))
      _ = machine.credentialGiven()
    }
    #expect(machine.redirectCount == 0)
    guard case .askRedirection = machine.responseReceived(try Self.response(302, ["Location": "/x"])) else {
      Issue.record("the redirection is not followed")
      return
    }
  }

  @Test func theDelegatesRequestIsTheOneThatCounts() throws {
    var machine = TaskMachine(try Self.request())
    _ = machine.responseReceived(try Self.response(302, ["Location": "/proposed"]))
    _ = machine.redirectionAnswered(try Self.request("http://a.example/chosen"))
    #expect(machine.request.url?.path == "/chosen")
    #expect(!machine.hasLeftOrigin)
    _ = machine.responseReceived(try Self.response(302, ["Location": "/proposed"]))
    _ = machine.redirectionAnswered(try Self.request("http://b.example/chosen"))
    #expect(machine.hasLeftOrigin)
  }

  /// A redirection may lead to a local URL (`file:` or `data:`) only if the program chose this URL, not if a server
  /// proposed it.
  @Test(arguments: [
    ("file:///a", "file:///a", false), ("file:///a", "file:///b", false), ("FILE:///a", "file:///a", false),
    ("data:,a", "data:,a", false), ("data:,a", "data:,b", false), ("http://b.example/", "data:,a", true),
    ("http://b.example/", "file:///a", true), ("mock:a", "data:,a", true),
    ("http://b.example/", "http://c.example/", false),
  ])
  func noServerLeadsToThisMachine(proposed: String, chosen: String, mayBeLocal: Bool) throws {
    var machine = TaskMachine(try Self.request())
    #expect(machine.mayBeLocal && machine.redirection == nil)
    _ = machine.responseReceived(try Self.response(302, ["Location": proposed]))
    _ = machine.redirectionAnswered(try Self.request(chosen))
    #expect(machine.mayBeLocal == mayBeLocal && machine.redirection?.statusCode == 302)
    // A protocol class for HTTP may only have passed on a server's redirection, so it may not lead to a local URL.
    for response in [nil, try Self.response(302)] {
      machine = TaskMachine(try Self.request())
      _ = machine.redirected(by: response, to: try Self.request(proposed))
      if response != nil { _ = machine.redirectionAnswered(try Self.request(chosen)) }
      #expect(machine.mayBeLocal == (response != nil && mayBeLocal))
      #expect(machine.redirection === response)
      machine = TaskMachine(try Self.request("mock:start"))
      _ = machine.redirected(by: response, to: try Self.request(proposed))
      if response != nil { _ = machine.redirectionAnswered(try Self.request(chosen)) }
      #expect(machine.mayBeLocal)
    }
  }

  @Test func leavingTheOriginIsRemembered() throws {
    var machine = TaskMachine(try Self.request())
    for location in ["http://b.example/", "http://a.example/"] {
      guard case .askRedirection(_, let next) = machine.responseReceived(try Self.response(302, ["Location": location]))
      else {
        Issue.record("\(location) is not followed")
        return
      }
      _ = machine.redirectionAnswered(next)
    }
    #expect(machine.request.url?.host == "a.example")
    #expect(machine.hasLeftOrigin)
  }
}
