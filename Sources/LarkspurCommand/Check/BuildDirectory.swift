import Foundation
import LarkspurConsole
import LarkspurIO

/// A directory in which SwiftPM has built a program, such as `.build/debug`.
///
/// Each target has a directory in it, `NAME.build`, with the compiler's dependency files. Modules are in `Modules`.
final class BuildDirectory {
  let path: String
  /// The object files that the products are linked from, or `nil` if they are not known.
  private let linked: Set<String>?
  private var moduleDates: [String: Date?] = [:]
  /// The order in which the modules are compiled, or `nil` if it is not known.
  private lazy var manifest = makeManifest()
  /// The number of bytes that may still be read from all dependency files together.
  private var budget = 1 << 30
  private var hasUnread = false

  /// The size of the largest file that is read, in bytes.
  private static let fileMax = 16 << 20
  /// The maximum number of entries that are read of one directory: of targets, and of the files of one target.
  private static let filesMax = 16_384

  /// A directory of which all targets count.
  init(_ path: String) {
    self.path = path
    linked = nil
  }

  /// - Parameter files: A program and the libraries beside it.
  init(of files: [LinkedFile]) {
    path = files.first.map { FilePaths.directory(of: $0.path) } ?? "."
    var lists: [Set<String>?] = []
    for file in files where FilePaths.directory(of: file.path) == path {
      let list = Self.linkedObjects(of: FilePaths.name(of: file.path), in: path)
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

  /// A target that declares no dependency on Larkspur is compiled at any time, also while Larkspur is: its compiler then
  /// ends after Larkspur's module is written, and has read the module before. A target that was compiled in such a time
  /// may be good or not.
  private func finding(on target: String, in directory: String) -> Finding? {
    let names = names(in: directory)
    // SwiftPM writes this file before it compiles the target, but only if the list of sources is new.
    let planned = Self.date(of: directory + "/sources")
    // The compiler's driver writes this file whenever it has checked the target, even if nothing had to be compiled.
    let visited = names.filter { $0.hasSuffix(".priors") }.compactMap { Self.date(of: directory + "/" + $0) }.max()
    var (isOld, mayBeOld) = (false, false)
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
          guard let built = moduleDate(name), let compiled else { break }
          if built > compiled { isOld = true }
          if let planned, built <= planned { break }
          if manifest?.orders(target, after: name) != true { mayBeOld = true }
        case .other: break
        }
      }
    }
    if isOld { return .compiledBeforeLarkspur(target: target) }
    return mayBeOld ? .compiledAroundLarkspur(target: target) : nil
  }

  private enum Origin {
    case toolchain
    case own(String)
    case other
  }

  /// Returns the origin of a module by the end of its path, which stays the same if the build directory is moved.
  private static func origin(of module: String) -> Origin {
    if let name = ModulePath.name(of: module) { return OwnModules.names.contains(name) ? .own(name) : .other }
    return module.split(separator: "/").contains("FoundationNetworking.swiftmodule") ? .toolchain : .other
  }

  private func moduleDate(_ name: String) -> Date? {
    if let known = moduleDates[name] { return known }
    let date = Self.date(of: "\(path)/Modules/\(name).swiftmodule")
    moduleDates[name] = .some(date)
    return date
  }

  /// The manifest of a build folder `.build/TRIPLE/debug`, which is `.build/debug.yaml`.
  private var manifestPath: String {
    "\(FilePaths.directory(of: FilePaths.directory(of: path)))/\(FilePaths.name(of: path)).yaml"
  }

  private func makeManifest() -> BuildManifest? {
    Self.read(manifestPath, max: Self.fileMax).map(BuildManifest.init)
  }

  // MARK: - Mending

  /// The paths of the compiler's products of a target, without which SwiftPM compiles the target again: its directory,
  /// and its files among the modules. Also the path of the manifest: while there is a manifest, SwiftPM does not write
  /// its own files of the directory again. A directory that SwiftPM has not made has no such paths.
  func products(of target: String) -> [String] {
    guard FileManager.default.fileExists(atPath: "\(path)/\(target).build/output-file-map.json") else { return [] }
    let modules = names(in: path + "/Modules").filter { $0.prefix { $0 != "." } == target }
    let manifests = [manifestPath].filter(FileManager.default.fileExists(atPath:))
    return ["\(path)/\(target).build"] + modules.map { "\(path)/Modules/\($0)" } + manifests
  }

  /// Removes products of a target.
  static func remove(_ products: [String]) throws(CommandFailure) {
    for product in products {
      do {
        try FileManager.default.removeItem(atPath: product)
      } catch {
        throw CommandFailure(
          .writeFailed, Format.visible("could not remove \(product): \(error.localizedDescription)".utf8))
      }
    }
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
