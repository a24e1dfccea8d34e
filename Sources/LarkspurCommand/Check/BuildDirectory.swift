import Foundation
import LarkspurIO

/// A directory in which SwiftPM has built a program, such as `.build/debug`.
///
/// Each target has a directory in it, `NAME.build`, with the compiler's dependency files. Modules are in `Modules`.
final class BuildDirectory {
  private let path: String
  /// The object files that the products are linked from, or `nil` if they are not known.
  private let linked: Set<String>?
  private var moduleDates: [String: Date?] = [:]
  /// The number of bytes that may still be read from all dependency files together.
  private var budget = 1 << 30
  private var hasUnread = false

  /// The size of the largest file that is read, in bytes.
  private static let fileMax = 16 << 20
  /// The maximum number of entries that are read of one directory: of targets, and of the files of one target.
  private static let filesMax = 16_384

  /// - Parameter files: A program and the libraries beside it.
  init(of files: [LinkedFile]) {
    path = files.first.map { FileName.directory(of: $0.path) } ?? "."
    var lists: [Set<String>?] = []
    for file in files where FileName.directory(of: file.path) == path {
      let list = Self.linkedObjects(of: FileName.last(of: file.path), in: path)
      // A library without a list may come from a binary package. SwiftPM has not made a program without one.
      if list != nil || file.name == nil { lists.append(list) }
    }
    linked = lists.contains(nil) ? nil : Set(lists.compactMap(\.self).joined())
  }

  /// Returns a finding for each linked target that has one, in the order of the targets' names. A directory that
  /// SwiftPM has not made has no findings.
  func findings() -> [Finding] {
    var findings: [Finding] = []
    for directory in names(in: path) where directory.hasSuffix(".build") {
      let target = String(directory.dropLast(6))
      // SwiftPM's suffix for tools that run during the build. No program contains them.
      guard !OwnModules.names.contains(target), !target.hasSuffix("-tool") else { continue }
      if let finding = finding(on: target, in: path + "/" + directory) { findings.append(finding) }
    }
    return findings + (hasUnread ? [.targetsNotRead] : [])
  }

  private func finding(on target: String, in directory: String) -> Finding? {
    let names = names(in: directory)
    // The compiler's driver writes this file whenever it has checked the target, even if nothing had to be compiled.
    let visited = names.filter { $0.hasSuffix(".priors") }.compactMap { Self.date(of: directory + "/" + $0) }.max()
    var isOld = false
    for name in names where name.hasSuffix(".d") {
      guard let bytes = read(directory + "/" + name) else {
        hasUnread = true
        continue
      }
      let file = DependencyFile(bytes)
      // Deleted source files, and targets of other products, leave their dependency files behind.
      if let linked, linked.isDisjoint(with: file.objects) { continue }
      let compiled = [visited, Self.date(of: directory + "/" + name)].compactMap(\.self).max()
      for module in file.modules {
        switch Self.origin(of: module) {
        case .toolchain: return .compiledAgainstToolchain(target: target)
        case .own(let name):
          if let built = moduleDate(name), let compiled, built > compiled { isOld = true }
        case .other: break
        }
      }
    }
    return isOld ? .compiledBeforeLarkspur(target: target) : nil
  }

  private enum Origin {
    case toolchain
    case own(String)
    case other
  }

  /// Returns the origin of a module by the end of its path, which stays the same if the build directory is moved.
  private static func origin(of module: String) -> Origin {
    let parts = module.split(separator: "/")
    guard let last = parts.last else { return .other }
    // SwiftPM writes a file into `Modules`. In the toolchain a module is a directory, with a file for each
    // architecture.
    if last.hasSuffix(".swiftmodule"), parts.dropLast().last == "Modules" {
      let name = String(last.dropLast(".swiftmodule".count))
      return OwnModules.names.contains(name) ? .own(name) : .other
    }
    return parts.contains("FoundationNetworking.swiftmodule") ? .toolchain : .other
  }

  private func moduleDate(_ name: String) -> Date? {
    if let known = moduleDates[name] { return known }
    let date = Self.date(of: "\(path)/Modules/\(name).swiftmodule")
    moduleDates[name] = .some(date)
    return date
  }

  // MARK: - Files

  private static func date(of path: String) -> Date? {
    (try? FileManager.default.attributesOfItem(atPath: path))?[.modificationDate] as? Date
  }

  private func names(in directory: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    if names.count > Self.filesMax { hasUnread = true }
    return names.sorted().prefix(Self.filesMax).map(\.self)
  }

  private func read(_ path: String) -> [UInt8]? {
    guard let bytes = Self.read(path, max: min(Self.fileMax, budget)) else { return nil }
    budget -= bytes.count
    return bytes
  }

  /// - Returns: The content of a regular file, or `nil` if it is larger than `max` or cannot be read.
  private static func read(_ path: String, max: Int) -> [UInt8]? {
    try? OpenFile(readingRegular: path).readToEnd(max: max)
  }

  /// Reads the list of object files that SwiftPM gives to the linker: one on each line, in quotes if it has blanks.
  private static func linkedObjects(of file: String, in directory: String) -> Set<String>? {
    var product = file[...]
    for suffix in [".xctest", ".so"] where product.hasSuffix(suffix) { product = product.dropLast(suffix.count) }
    if file.hasSuffix(".so"), product.hasPrefix("lib") { product = product.dropFirst(3) }
    guard let bytes = read("\(directory)/\(product).product/Objects.LinkFileList", max: fileMax) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return Set(
      lines.map { line in
        guard line.count > 1, line.hasPrefix("'"), line.hasSuffix("'") else { return String(line) }
        return String(line.dropFirst().dropLast()).replacing("'\\''", with: "'")
      })
  }
}
