import Foundation

/// The initial header fields of a serializer.
enum DefaultFields {
  /// The fields for this process.
  static let current: [String: String] = {
    var fields: [String: String] = [:]
    let environment = ProcessInfo.processInfo.environment
    fields["Accept-Language"] = acceptLanguage(languages(environment, otherwise: Locale.preferredLanguages))
    fields["User-Agent"] = userAgent(
      info: Bundle.main.infoDictionary ?? [:], processName: ProcessInfo.processInfo.processName,
      system: ProcessInfo.processInfo.operatingSystemVersionString)
    return fields
  }()

  /// Maximum number of languages: weights go down to 0.5.
  static let languagesMax = 6

  /// Returns the languages in order, with weights from 1 down in steps of 0.1 (RFC 9110 12.5.4), or `nil` if there are
  /// no languages.
  static func acceptLanguage(_ languages: [String]) -> String? {
    guard !languages.isEmpty else { return nil }
    return languages.prefix(languagesMax).enumerated().map { index, language in
      "\(language);q=\(index == 0 ? "1" : "0.\(10 - index)")"
    }.joined(separator: ", ")
  }

  /// Returns the user's languages as language tags, from the environment (POSIX 8.2; `LANGUAGE` is a list for gettext).
  static func languages(_ environment: [String: String], otherwise fallback: [String]) -> [String] {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    let locale = names.flatMap(tag)
    // gettext ignores its list in the C locale.
    let list = locale == nil ? [] : (environment["LANGUAGE"] ?? "").split(separator: ":").compactMap { tag(String($0)) }
    var languages = list + [locale].compactMap { $0 }
    // Foundation on Linux reports `en-001`, the English of the world. Servers do not have this language.
    if languages.isEmpty { languages = fallback.map { $0.hasSuffix("-001") ? String($0.dropLast(4)) : $0 } }
    var result: [String] = []
    for language in languages where !result.contains(language) { result.append(language) }
    return result
  }

  /// Converts a locale's name to a language tag: `de_AT.UTF-8@euro` to `de-AT`. Returns `nil` for names without a
  /// language, such as `C` and `POSIX`.
  private static func tag(_ locale: String) -> String? {
    let name = locale.prefix { $0 != "." && $0 != "@" }
    guard name != "C", name != "POSIX", !name.isEmpty,
      name.utf8.allSatisfy({ $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") || isLetterOrDigit($0) })
    else { return nil }
    return String(name).replacingOccurrences(of: "_", with: "-")
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte | 0x20 {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): true
    default: UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
    }
  }

  /// Returns `name/version (Linux; system)`: name and version from the bundle's information dictionary, or else the
  /// process's name without a version. Other characters than ASCII are transliterated.
  static func userAgent(info: [String: Any], processName: String, system: String) -> String {
    func text(_ keys: String...) -> String? { keys.lazy.compactMap { info[$0] as? String }.first { !$0.isEmpty } }
    let name = text("CFBundleExecutable", "CFBundleIdentifier") ?? processName
    let version = text("CFBundleShortVersionString", "CFBundleVersion").map { "/\($0)" } ?? ""
    return ascii("\(name)\(version) (Linux; \(system))")
  }

  private static func ascii(_ text: String) -> String {
    let transform = StringTransform("Any-Latin; Latin-ASCII; [:^ASCII:] Remove")
    let plain = text.utf8.allSatisfy { $0 < 128 } ? text : text.applyingTransform(transform, reverse: false) ?? text
    // A control character would end the field.
    return String(String.UnicodeScalarView(plain.unicodeScalars.filter { 32..<127 ~= $0.value }))
  }
}
