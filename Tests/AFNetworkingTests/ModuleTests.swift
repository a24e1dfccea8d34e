import AFNetworking
import Testing

@Suite struct ModuleTests {
  /// `import AFNetworking` alone is enough for a program that uses the types of Foundation and of URLSession.
  @Test func oneImportIsEnough() {
    let configuration = URLSessionConfiguration.default
    configuration.timeoutIntervalForRequest = TimeInterval(30)
    #expect(configuration.timeoutIntervalForRequest == 30)
  }
}
