extension GetOptions {
  mutating func add(_ more: Data, isJSON: Bool = false) throws(UsageError) {
    guard data.isEmpty || isJSON == session.isJSON else {
      throw UsageError("--data and --json exclude each other")
    }
    session.isJSON = isJSON
    data.append(more)
  }

  /// Adds the value of `--data-urlencode`: `TEXT`, `=TEXT`, `NAME=TEXT`, `@FILE` or `NAME@FILE`. The first `=` counts, or
  /// else the first `@`.
  mutating func addEncoded(_ value: String) throws(UsageError) {
    let separator = value.firstIndex(of: "=") ?? value.firstIndex(of: "@") ?? value.endIndex
    let content = String(value[separator...])
    let hasName = separator < value.endIndex
    encodedNames[data.count] = hasName ? String(value[..<separator]) : ""
    try add(!hasName ? .text(value) : content.hasPrefix("=") ? .text(String(content.dropFirst())) : Data(content))
  }

  /// Encodes the data of `--data-urlencode`, and moves all data into the URL if `-G` is given.
  ///
  /// - Returns: The URL of the request.
  mutating func readData() throws(CommandFailure) -> RequestURL {
    for (index, name) in encodedNames {
      let content = String(decoding: RequestURL.formEncoded(try data[index].bytes()), as: UTF8.self)
      data[index] = .text(name.isEmpty ? content : "\(name)=\(content)")
    }
    encodedNames = [:]
    let target = try RequestURL.parse(url)
    guard dataIsQuery else { return target }
    defer { data = [] }
    return target.appending(query: try allData())
  }

  /// The text between two data.
  var separator: String { session.isJSON ? "" : "&" }

  /// Reads all data, and joins them.
  func allData() throws(CommandFailure) -> [UInt8] {
    var parts: [[UInt8]] = []
    for part in data { parts.append(try part.bytes()) }
    return Array(parts.joined(separator: separator.utf8))
  }
}

extension GetOptions.Data {
  /// Reads all of the data.
  func bytes() throws(CommandFailure) -> [UInt8] {
    switch self {
    case .text(let text): return Array(text.utf8)
    case .file(let path): return try OptionFile.read(path)
    }
  }
}
