import Foundation
import LarkspurIO
import Testing

struct EnvironmentVariableTests {
  @Test func allVariables() {
    #expect(EnvironmentVariable.all == ProcessInfo.processInfo.environment)
    #expect(EnvironmentVariable.value(of: "PATH") == ProcessInfo.processInfo.environment["PATH"])
    #expect(EnvironmentVariable.value(of: "LARKSPUR_NO_SUCH_VARIABLE") == nil)
  }
}
