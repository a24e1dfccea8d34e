import LarkspurConsole
import LarkspurIO
import LarkspurTransport

/// `larkspur get` for all URLs that the URL of the command line stands for, one after another. URLs of one server in a row
/// use one session, and so its connections.
struct GetEach {
  let options: GetOptions
  let loop: ClientLoop

  /// - Returns: The status of the first transfer that failed, so that a later success hides no failure.
  func run() async -> ExitStatus {
    options.mute()
    let glob: URLGlob
    do throws(CommandFailure) {
      if options.takesURLAsIs || options.downloads.list != nil { return await Get(options, on: loop).run() }
      glob = try URLGlob(options.url)
      if glob.count > 1 { try check(glob) }
    } catch {
      return error.report()
    }
    var status = ExitStatus.success
    let kept = KeptSession()
    for index in 0..<glob.count where CaughtSignal.pending == nil {
      let current = options.forURL(index, of: glob)
      let keepsSession = index + 1 < glob.count && current.sharesSession(with: options.forURL(index + 1, of: glob))
      let own = await Get(current, on: loop, by: kept, keepingSession: keepsSession).run()
      if status == .success { status = own }
    }
    return status
  }

  /// Checks that no file would be written again, and no input read again, for each URL.
  private func check(_ glob: URLGlob) throws(CommandFailure) {
    var seen: Set<String> = []
    let outputs = (0..<glob.count).lazy.compactMap { options.forURL($0, of: glob).path }
    let others = [options.headFile, options.harFile, options.etagFile, options.session.cookieJar.output].compactMap {
      $0
    }
    let repeated = others.first { $0 != "-" } ?? outputs.first { !seen.insert($0).inserted }
    // What is written to a device is not lost.
    if let repeated, (try? FilePaths.kind(of: repeated)) != .other {
      throw CommandFailure(
        .usage,
        "several of \(glob.count) URLs would be written to \(repeated) (#1 in the name of -o makes it another one)")
    }
    let parts = options.data + options.session.parts.map(\.content)
    guard !parts.contains(.file("-")) else {
      throw CommandFailure(.usage, "standard input can be sent to one URL only, and not to \(glob.count)")
    }
  }
}

extension GetOptions {
  /// The file that the content is written to, or `nil` for standard output.
  fileprivate var path: String? {
    (try? RequestURL.parse(url)).flatMap { try? outputPath(for: $0) }
  }

  /// Returns the options for one of the URLs. `#1` in the output's name becomes the text of the first set or range.
  func forURL(_ index: Int, of glob: URLGlob) -> GetOptions {
    let (url, choices) = glob[index]
    var options = self
    options.url = url
    options.output = output.map { URLGlob.name($0, choices: choices) }
    return options
  }
}
