import LarkspurHTTP

extension GetOptions {
  /// Returns the path of the file to write, or `nil` for standard output.
  func outputPath(for target: RequestURL) throws(CommandFailure) -> String? {
    guard let name = usesRemoteName ? target.safeFileName : output else {
      guard usesRemoteName else { return nil }
      throw CommandFailure(.writeFailed, "the URL's path has no file name at its end: use -o in place of -O")
    }
    return path(named: name)
  }

  /// Returns the path of a file in the directory of `--output-dir`.
  func path(named name: String) -> String {
    outputDirectory.map { $0.hasSuffix("/") ? $0 + name : "\($0)/\(name)" } ?? name
  }
}

extension RequestURL {
  /// The last name in the path, as a name that means a file in the current directory and nothing else, or `nil` if there
  /// is none. Percent-encoded bytes stay, as in curl.
  var safeFileName: String? {
    fileName.map { SuggestedFilename.name(disposition: nil, pathComponent: $0, host: nil, mediaType: nil) }
  }
}
