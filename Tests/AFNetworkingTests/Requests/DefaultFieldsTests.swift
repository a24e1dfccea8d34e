import Foundation
import Testing

@testable import AFNetworking

/// Tests the header fields of a new serializer.
@Suite struct DefaultFieldsTests {
  @Test func languagesWeighLessAndLess() {
    #expect(DefaultFields.acceptLanguage([]) == nil)
    #expect(DefaultFields.acceptLanguage(["en"]) == "en;q=1")
    let many = ["de-AT", "de", "en", "fr", "it", "es", "pt", "nl"]
    #expect(
      DefaultFields.acceptLanguage(many) == "de-AT;q=1, de;q=0.9, en;q=0.8, fr;q=0.7, it;q=0.6, es;q=0.5")
  }

  @Test(arguments: [
    (["LANG": "de_AT.UTF-8"], ["de-AT"]),
    (["LANG": "sr_RS@latin"], ["sr-RS"]),
    (["LANG": "en_US.UTF-8", "LC_MESSAGES": "fr_FR.UTF-8"], ["fr-FR"]),
    (["LANG": "en_US.UTF-8", "LC_MESSAGES": "fr_FR.UTF-8", "LC_ALL": "it_IT"], ["it-IT"]),
    (["LANG": "en_US.UTF-8", "LC_ALL": ""], ["en-US"]),
    (["LANG": "en_US.UTF-8", "LANGUAGE": "de_AT:de::en_US"], ["de-AT", "de", "en-US"]),
    (["LANG": "C.UTF-8", "LANGUAGE": "de"], ["own"]),
    (["LANG": "POSIX"], ["own"]),
    (["LANG": "en\r\nX-Own: 1"], ["own"]),
    ([:], ["own"]),
  ])
  func languagesAreThoseOfTheEnvironment(environment: [String: String], expected: [String]) {
    #expect(DefaultFields.languages(environment, otherwise: ["own-001"]) == expected)
  }

  @Test func theUserAgentSaysWhatThereIs() {
    func agent(_ info: [String: Any]) -> String {
      DefaultFields.userAgent(info: info, processName: "tool", system: "Debian GNU/Linux 12 (bookworm)")
    }
    let system = "(Linux; Debian GNU/Linux 12 (bookworm))"
    #expect(agent([:]) == "tool \(system)")
    #expect(agent(["CFBundleIdentifier": "org.example.app", "CFBundleVersion": "7"]) == "org.example.app/7 \(system)")
    let all = [
      "CFBundleIdentifier": "org.example.app", "CFBundleVersion": "7", "CFBundleExecutable": "App",
      "CFBundleShortVersionString": "1.2",
    ]
    #expect(agent(all) == "App/1.2 \(system)")
  }

  @Test func theUserAgentIsASCII() {
    #expect(DefaultFields.userAgent(info: [:], processName: "Gr\u{FC}\u{DF}e\r\n", system: "x") == "Grusse (Linux; x)")
  }

  @Test func everySerializerHasThem() {
    for serializer in [AFHTTPRequestSerializer(), AFJSONRequestSerializer(), AFPropertyListRequestSerializer()] {
      #expect(serializer.httpRequestHeaders == DefaultFields.current)
      #expect(serializer.value(forHTTPHeaderField: "User-Agent")?.contains("(Linux; ") == true)
      #expect(serializer.value(forHTTPHeaderField: "Accept-Language")?.contains(";q=1") == true)
    }
  }
}
