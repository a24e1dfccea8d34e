/// Symbols that only the toolchain's module and curl's library define.
enum ForeignSymbols {
  /// The common beginning of all names in `networking`.
  static let networkingPrefix = Array("$s20FoundationNetworking".utf8)

  /// The descriptors of the module's types, each with the zero byte that ends it.
  ///
  /// Larkspur's module of that name defines none of these types, and a program's extensions of such types have other
  /// symbol names.
  static let networking = [
    "10URLSessionC", "14URLSessionTaskC", "10URLRequestV", "11URLResponseC", "11URLProtocolC", "10HTTPCookieC",
  ].map { networkingPrefix + Array("\($0)Mn\0".utf8) }

  static let curl = ["curl_easy_init\0", "curl_easy_perform\0"].map { Array($0.utf8) }
}

/// Names of shared libraries.
enum LibraryName {
  /// Whether the library is the toolchain's FoundationNetworking, or curl's in any of its variants.
  static func isForeign(_ name: String) -> Bool {
    ["libFoundationNetworking", "libcurl"].contains { name.hasPrefix($0) } && name.contains(".so")
  }

  /// Libraries of the toolchain that need nothing foreign. A deployed program has them beside it.
  static let harmless: Set<String> = [
    swiftRuntime, "libFoundation.so", "libFoundationEssentials.so", "libFoundationInternationalization.so",
    "libFoundationXML.so", "lib_FoundationICU.so", "libdispatch.so", "libBlocksRuntime.so",
  ]

  /// The library that every program needs unless Swift's standard library, and Foundation, are linked statically.
  static let swiftRuntime = "libswiftCore.so"
}
