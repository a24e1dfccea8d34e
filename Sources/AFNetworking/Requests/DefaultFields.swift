import Foundation

/// The header fields that a serializer starts with.
enum DefaultFields {
  /// Of this process.
  static let current: [String: String] = {
    var fields: [String: String] = [:]
    let environment = ProcessInfo.processInfo.environment
    fields["Accept-Language"] = acceptLanguage(languages(environment, otherwise: Locale.preferredLanguages))
    fields["User-Agent"] = userAgent(
      info: Bundle.main.infoDictionary ?? [:], processName: ProcessInfo.processInfo.processName,
      system: ProcessInfo.processInfo.operatingSystemVersionString)
    return fields
  }()

  /// So many languages at most: weights go down to 0.5.
  static let languagesMax = 6

  /// In order, with weights from 1 down in steps of a tenth (RFC 9110 12.5.4). Nil: no language is known.
  static func acceptLanguage(_ languages: [String]) -> String? {
    guard !languages.isEmpty else { return nil }
    return languages.prefix(languagesMax).enumerated().map { index, language in
      "\(language);q=\(index == 0 ? "1" : "0.\(10 - index)")"
    }.joined(separator: ", ")
  }

  /// What the user reads, as the environment says it (POSIX 8.2; `LANGUAGE` is gettext's list), as language tags.
  static func languages(_ environment: [String: String], otherwise fallback: [String]) -> [String] {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    let locale = names.flatMap(tag)
    // gettext does not look at its list in the C locale.
    let list = locale == nil ? [] : (environment["LANGUAGE"] ?? "").split(separator: ":").compactMap { tag(String($0)) }
    var languages = list + [locale].compactMap { $0 }
    // Foundation on Linux says English of the whole world, `en-001`, which is no language that servers have.
    if languages.isEmpty { languages = fallback.map { $0.hasSuffix("-001") ? String($0.dropLast(4)) : $0 } }
    var result: [String] = []
    for language in languages where !result.contains(language) { result.append(language) }
    return result
  }

  /// `de_AT.UTF-8@euro` is `de-AT`. Nil: no language, as in `C` and `POSIX`.
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

  /// `name/version (Linux system)`: name and version from the bundle's information where a program has one; otherwise the
  /// process's name, without a version. In ASCII: what is written otherwise is transliterated.
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
