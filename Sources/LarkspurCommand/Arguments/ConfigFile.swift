import LarkspurIO

/// A file of options, as curl reads them: one in each line, `option = value`, `option: value` or `option value`, with
/// or without dashes. A value with blanks stands in double quotes. Lines that begin with `#` are comments.
enum ConfigFile {
  /// Applies the options of a file.
  ///
  /// - Parameter path: `-` is standard input.
  static func read<Options: OptionList>(_ path: String, into options: inout Options) throws(UsageError) {
    try apply(try OptionFile.read(path, of: "config"), of: path, to: &options)
  }

  /// - Throws: An error whose message begins with `FILE:LINE: `.
  static func apply<Options: OptionList>(
    _ bytes: [UInt8], of path: String, to options: inout Options
  ) throws(UsageError) {
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      do throws(UsageError) {
        var reader = ArgumentReader(try words(of: line)[...], options: Options.options.map(\.names))
        while let argument = try reader.next() {
          switch argument {
          case .operand(let word):
            throw UsageError("\(word.debugDescription) is no option (a URL is given by url = URL)")
          case .option("config", _): throw UsageError("a file of options cannot name another one")
          case .option(let name, let value): try options.apply(name, value)
          }
        }
      } catch {
        throw UsageError("\(path):\(index + 1): \(error)")
      }
    }
  }

  /// Returns the words that a line stands for on the command line.
  static func words(of line: ArraySlice<UInt8>) throws(UsageError) -> [String] {
    var rest = line.drop(while: isBlank)
    guard let first = rest.first, first != UInt8(ascii: "#") else { return [] }
    let hasDash = first == UInt8(ascii: "-")
    let isSeparator = { (byte: UInt8) in !hasDash && (byte == UInt8(ascii: "=") || byte == UInt8(ascii: ":")) }
    let name = rest.prefix { !isBlank($0) && !isSeparator($0) }
    rest = rest[name.endIndex...].drop(while: isBlank)
    let hasSeparator = rest.first.map(isSeparator) == true
    if hasSeparator { rest = rest.dropFirst().drop(while: isBlank) }
    var word = String(decoding: name, as: UTF8.self)
    if !hasDash { word = "--" + word }
    guard hasSeparator || !rest.isEmpty && rest.first != UInt8(ascii: "#") else { return [word] }
    var value = Array(rest.prefix { !isBlank($0) })
    if rest.first == UInt8(ascii: "\"") {
      guard let quoted = QuotedWord.take(from: &rest) else { throw UsageError("the closing quote is missing") }
      value = quoted
    } else {
      rest = rest.dropFirst(value.count)
    }
    rest = rest.drop(while: isBlank)
    guard rest.isEmpty || rest.first == UInt8(ascii: "#") else {
      throw UsageError(
        "something stands after the value of \(word) (a value with blanks has to stand in double quotes)")
    }
    let text = String(decoding: value, as: UTF8.self)
    return hasDash ? [word, text] : ["\(word)=\(text)"]
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
  }
}

extension GetOptions {
  /// The user's own file of options.
  static var configuration: String? {
    UserPaths.directory("XDG_CONFIG_HOME", ".config").map { $0 + "/larkspur/get.conf" }
  }

  /// Returns the options of a file, if it exists, and if the command line does not begin with `-q`.
  static func defaults(_ file: String?, for arguments: ArraySlice<String>) throws(UsageError) -> GetOptions {
    var options = GetOptions(url: "")
    let isDisabled = arguments.first.map { $0.hasPrefix("-q") || $0 == "--disable" } ?? false
    if let file, !isDisabled, (try? FilePaths.kind(of: file)) != nil { try ConfigFile.read(file, into: &options) }
    return options
  }
}
