import Testing

@testable import Larkspur

@Suite struct DelegateMethodProbeTests {
  private final class Delegate {}

  private final class Subject {
    let probe = DelegateMethodProbe()
  }

  private let first = Delegate()
  private let second = Delegate()
  private let subject = Subject()

  private func call(_ delegate: Delegate, lacksMethod: Bool = false) -> Bool {
    subject.probe.isImplemented(by: delegate) {
      if lacksMethod { subject.probe.isMissing(in: delegate) }
      return true
    }
  }

  @Test func oneCallAfterAnother() {
    #expect(call(first))
    #expect(!call(first, lacksMethod: true))
    #expect(call(first))
    #expect(!call(second, lacksMethod: true))
    #expect(!subject.probe.isImplemented(by: first) { false })
    #expect(call(first))
  }

  /// A delegate that forwards its calls implements a method that is missing in the other object.
  @Test func forwarding() {
    let isImplemented = subject.probe.isImplemented(by: first) {
      subject.probe.isMissing(in: second)
      return true
    }
    #expect(isImplemented)
  }

  /// A delegate passes a challenge on to another session, which calls its own delegate before the first call returns.
  @Test(arguments: [false, true]) func overlappingCalls(secondLacksMethod: Bool) {
    let isImplemented = subject.probe.isImplemented(by: first) {
      #expect(call(second, lacksMethod: secondLacksMethod) == !secondLacksMethod)
      return true
    }
    #expect(isImplemented)
  }
}
