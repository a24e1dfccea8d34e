/// The reason why an ELF file cannot be read.
package enum ELFError: Error, Hashable, Sendable, CustomStringConvertible {
  case notELF
  /// The file is for 32-bit or for big-endian machines.
  case unsupportedMachine
  /// The file is an object file or a core dump.
  case notLinked
  /// A field of the file contradicts the rest of it, or the file is cut short.
  case damaged(String)
  case tableTooLarge
  case unreadable(String)

  package var description: String {
    switch self {
    case .notELF: "not an ELF file"
    case .unsupportedMachine: "ELF files of 32 bits, or big-endian ones, are not supported"
    case .notLinked: "an ELF file, but neither a program nor a shared library"
    case .damaged(let part): "the file is damaged, or cut short (\(part))"
    case .tableTooLarge: "one of its tables is larger than 512 MiB"
    case .unreadable(let reason): reason
    }
  }
}
