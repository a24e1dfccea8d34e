/// A dependency file of the compiler, in the format of `make`: the outputs, a colon, and the inputs.
///
/// ```
/// /a/Third.build/One.swift.o : /src/One\ file.swift /a/Modules/Larkspur.swiftmodule
/// ```
package struct DependencyFile: Hashable, Sendable {
  /// The object files among the outputs.
  package private(set) var objects: Set<String> = []
  /// The paths of modules among the inputs. Files in a module's directory count as well.
  package private(set) var modules: Set<String> = []

  /// Parses a dependency file. Anything that is not understood is left out.
  package init(_ bytes: [UInt8]) {
    var word: [UInt8] = []
    var isOutput = true
    var isEscaped = false
    for byte in bytes {
      switch (byte, isEscaped) {
      case (UInt8(ascii: "\\"), false):
        isEscaped = true
        continue
      // A line break behind a backslash is a blank.
      case (UInt8(ascii: "\n"), _), (UInt8(ascii: " "), false), (UInt8(ascii: "\t"), false),
        (UInt8(ascii: "\r"), false):
        if isOutput, word.last == UInt8(ascii: ":") {
          word.removeLast()
          insert(word, isOutput: true)
          isOutput = false
        } else {
          insert(word, isOutput: isOutput)
        }
        word.removeAll(keepingCapacity: true)
        if byte == UInt8(ascii: "\n"), !isEscaped { isOutput = true }
      default: word.append(byte)
      }
      isEscaped = false
    }
    insert(word, isOutput: isOutput)
  }

  private mutating func insert(_ word: [UInt8], isOutput: Bool) {
    guard !word.isEmpty else { return }
    // In this format a dollar sign is written twice.
    let path = String(decoding: word, as: UTF8.self).replacing("$$", with: "$")
    if isOutput {
      if path.hasSuffix(".o") { objects.insert(path) }
    } else if path.contains(".swiftmodule") {
      modules.insert(path)
    }
  }
}
