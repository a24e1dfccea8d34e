// swift-tools-version: 6.2
import PackageDescription

// What only Larkspur's own developers build: fuzz targets need unsafe flags and benchmarks need a
// root package's view of `package` symbols, and neither may burden a package that depends on this one.
let includesFuzzers = Context.environment["LARKSPUR_FUZZ"] != nil
let includesBenchmarks = Context.environment["LARKSPUR_BENCHMARKS"] != nil
/// The test targets to build, all of them by default. Sanitizers run a part, and need not compile the others.
let wantedTests = Context.environment["LARKSPUR_TESTS"]?.split(separator: " ").map(String.init)
let warningsAreErrors = Context.environment["CI"] != nil

// Tests may reach for raw memory where a scripted kernel or a fault needs it: they go without strict memory safety.
let testSettings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    // Types that lend a view of their bytes say how long the view lives (`@_lifetime`).
    .enableExperimentalFeature("Lifetimes"),
    // An async function runs where its caller runs: code on a loop stays on the loop.
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (warningsAreErrors ? [.treatAllWarnings(as: .error)] : [])
// Functions of C are declared in Swift (`@_extern(c)`): clients of our modules need no module map for them, so that a
// package that does not declare a dependency on this one can import FoundationNetworking.
let settings = testSettings + [.strictMemorySafety(), .enableExperimentalFeature("Extern")]

/// The libraries of C that a target links. Xcode compiles all targets, also those of another platform.
func libraries(_ names: String...) -> [LinkerSetting] {
  names.map { .linkedLibrary($0, .when(platforms: [.linux])) }
}

let package = Package(
  name: "larkspur",
  products: [
    .executable(name: "larkspur", targets: ["LarkspurCommand"]),
    .library(name: "Larkspur", targets: ["Larkspur"]),
    .library(name: "LarkspurClient", targets: ["LarkspurClient"]),
    // With Larkspur beside it: SwiftPM compiles a client again when a module changes that is in the product itself.
    .library(name: "FoundationNetworking", targets: ["FoundationNetworking", "Larkspur"]),
    .library(name: "AFNetworking", targets: ["AFNetworking"]),
    .library(name: "AFNetworkingXML", targets: ["AFNetworkingXML"]),
    .library(name: "LarkspurTestServer", targets: ["LarkspurTestServer"]),
    .library(name: "ZipArchive", targets: ["ZipArchive"]),
  ],
  targets: [
    .target(name: "CLarkspurLinux"),
    .target(
      name: "CLarkspurOpenSSL", linkerSettings: libraries("ssl", "crypto")),
    .target(name: "CLarkspurScan"),
    .target(
      name: "CLarkspurTestServer", linkerSettings: libraries("ssl", "crypto")),
    .target(name: "CLarkspurZip", linkerSettings: libraries("zip")),
    .target(name: "LarkspurBytes", dependencies: ["CLarkspurScan"], swiftSettings: settings),
    .target(name: "LarkspurHTTP", dependencies: ["LarkspurBytes"], swiftSettings: settings),
    .target(name: "LarkspurIO", dependencies: ["CLarkspurLinux", "LarkspurBytes"], swiftSettings: settings),
    .target(name: "LarkspurTLS", dependencies: ["CLarkspurOpenSSL", "LarkspurBytes"], swiftSettings: settings),
    .target(
      name: "LarkspurTransport", dependencies: ["LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS"],
      swiftSettings: settings),
    // The records of background transfers: the library and the transfer service share them.
    .target(
      name: "LarkspurTransfers", dependencies: ["LarkspurBytes", "LarkspurHTTP", "LarkspurIO"],
      swiftSettings: settings),
    // The transfer service's own part. Programs that import the library do not carry it.
    .target(
      name: "LarkspurTransferServer", dependencies: ["LarkspurBytes", "LarkspurIO", "LarkspurTransfers"],
      swiftSettings: settings),
    .target(
      name: "LarkspurCoding", swiftSettings: settings, linkerSettings: libraries("z")),
    // The stages of a load, without Foundation.
    .target(
      name: "LarkspurEngine",
      dependencies: [
        "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransport",
      ],
      swiftSettings: settings),
    // The client without Foundation.
    .target(
      name: "LarkspurClient",
      dependencies: [
        "LarkspurBytes", "LarkspurCoding", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTransport",
      ],
      exclude: ["LarkspurClient.docc"],
      swiftSettings: settings),
    .target(
      name: "Larkspur",
      dependencies: [
        "LarkspurBytes", "LarkspurCoding", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTransfers",
        "LarkspurTransport",
      ],
      exclude: ["Larkspur.docc"],
      swiftSettings: settings),
    // Larkspur under the name of the toolchain's module, for packages that stay as they are.
    .target(name: "FoundationNetworking", dependencies: ["Larkspur"], swiftSettings: settings),
    .target(
      name: "AFNetworking", dependencies: ["Larkspur"], exclude: ["AFNetworking.docc"], swiftSettings: settings),
    // What needs FoundationXML, which burdens a program with libxml2.
    .target(name: "AFNetworkingXML", dependencies: ["AFNetworking", "Larkspur"], swiftSettings: settings),
    // What needs libzip.
    .target(
      name: "ZipArchive", dependencies: ["CLarkspurZip", "LarkspurBytes", "LarkspurIO"], exclude: ["ZipArchive.docc"],
      swiftSettings: settings),
    .target(
      name: "LarkspurTestServer",
      dependencies: [
        "CLarkspurTestServer", "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
      ],
      swiftSettings: settings),
    // The text output of the command and of the demonstration.
    .target(
      name: "LarkspurConsole", dependencies: ["LarkspurBytes", "LarkspurIO", "LarkspurTLS"], swiftSettings: settings),
    .executableTarget(
      name: "LarkspurCommand",
      dependencies: [
        "Larkspur", "LarkspurBytes", "LarkspurConsole", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTransferServer", "LarkspurTransfers", "LarkspurTransport",
      ],
      exclude: ["Support"],
      swiftSettings: settings),
    // Apart from the command, which carries neither the test server nor AFNetworking.
    .executableTarget(
      name: "LarkspurDemonstration",
      dependencies: [
        "AFNetworking", "Larkspur", "LarkspurBytes", "LarkspurConsole", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTestServer", "LarkspurTransfers", "LarkspurTransport",
      ],
      swiftSettings: settings),
    // What the fuzzers check. `swift test` checks the same of the seeds in Fuzz/Corpus.
    .target(
      name: "FuzzOracles",
      dependencies: [
        "AFNetworking", "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurTLS", "LarkspurTestSupport",
        "LarkspurTransfers", "ZipArchive",
      ],
      path: "Fuzz/Oracles",
      swiftSettings: testSettings),
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    .target(name: "CNamespaces", path: "Tests/CNamespaces"),
    .target(name: "TestKit", path: "Tests/TestKit", swiftSettings: testSettings),
    // A network in memory, for tests and fuzz targets.
    .target(
      name: "LarkspurTestSupport",
      dependencies: ["LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTransport"],
      path: "Tests/LarkspurTestSupport", swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurTLSTests", dependencies: ["LarkspurTLS", "LarkspurTestServer"], swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurIOTests", dependencies: ["LarkspurBytes", "LarkspurIO", "LarkspurTransport", "TestKit"],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurTransfersTests",
      dependencies: [
        "LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurSimulation", "LarkspurTransferServer",
        "LarkspurTransfers", "TestHelper", "TestKit",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurTransportTests",
      dependencies: [
        "CRuntimeOrder", "LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransport",
        "LarkspurTestSupport", "LarkspurTestServer", "TestKit",
      ],
      swiftSettings: testSettings),
    // Real servers, installed by the test command and started by the tests.
    .testTarget(
      name: "LarkspurRealServerTests",
      dependencies: [
        "AFNetworking", "CLarkspurOpenSSL", "CNamespaces", "Larkspur", "LarkspurBytes", "LarkspurClient",
        "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransfers", "LarkspurTransport",
        "LarkspurTestServer",
        "LarkspurTestSupport", "TestHelper", "TestKit",
      ],
      swiftSettings: testSettings),
    // The whole transport in a world of its own, and a command that runs any number of worlds.
    .target(
      name: "LarkspurSimulation",
      dependencies: [
        "LarkspurBytes", "LarkspurClient", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTestSupport", "LarkspurTransfers", "LarkspurTransport", "TestKit",
      ],
      path: "Tests/LarkspurSimulation", swiftSettings: testSettings),
    .executableTarget(
      name: "Simulate", dependencies: ["LarkspurSimulation"], path: "Tests/Simulate", swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurSimulationTests", dependencies: ["LarkspurSimulation", "Simulate", "TestKit"],
      swiftSettings: testSettings),
    .executableTarget(
      name: "Soak",
      dependencies: [
        "CRuntimeOrder", "LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransport",
        "LarkspurTestServer", "LarkspurTestSupport", "TestKit",
      ],
      path: "Tests/Soak", swiftSettings: testSettings),
    // What ThreadSanitizer needs to know.
    .target(name: "CRuntimeOrder", path: "Tests/ThreadSanitizer/CRuntimeOrder"),
    // The checks that need a process of their own, one command for each.
    .executableTarget(
      name: "TestHelper",
      dependencies: [
        "AFNetworking", "CRuntimeOrder", "Larkspur", "LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTransfers", "LarkspurTransport", "LarkspurTestServer", "LarkspurTestSupport", "TestKit",
        "UserReportRunner",
      ],
      path: "Tests/TestHelper", swiftSettings: testSettings),
    // The repository's rules and budgets.
    .testTarget(
      name: "LarkspurRepositoryTests",
      dependencies: [
        "AFNetworking", "CAllocations", "Larkspur", "LarkspurBytes", "LarkspurClient", "LarkspurHTTP", "LarkspurIO",
        "LarkspurTLS", "LarkspurTransport", "LarkspurTestServer", "LarkspurTestSupport", "Soak", "TestHelper",
        "TestKit", "ZipArchive",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurBytesTests", dependencies: ["LarkspurBytes", "CAllocations", "TestKit"],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurCodingTests", dependencies: ["CAllocations", "LarkspurCoding", "TestKit"],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurHTTPTests",
      dependencies: ["LarkspurBytes", "LarkspurHTTP", "FuzzOracles", "CAllocations", "TestKit"],
      swiftSettings: testSettings),
    // What users report of FoundationNetworking, as a program that needs nothing but the module, and who runs it.
    .executableTarget(
      name: "UserReports", dependencies: ["Larkspur"], path: "Tests/UserReports", swiftSettings: testSettings),
    .target(
      name: "UserReportRunner", dependencies: ["LarkspurTestServer"], path: "Tests/UserReportRunner",
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurTests",
      dependencies: [
        "CAllocations", "Larkspur", "LarkspurBytes", "LarkspurCoding", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO",
        "LarkspurTLS", "LarkspurTransfers", "LarkspurTransport", "LarkspurTestServer", "LarkspurTestSupport",
        "TestHelper", "TestKit", "UserReportRunner", "UserReports",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurClientTests",
      dependencies: [
        "CAllocations", "LarkspurBytes", "LarkspurClient", "LarkspurEngine", "LarkspurHTTP", "LarkspurIO",
        "LarkspurSimulation", "LarkspurTLS", "LarkspurTestServer", "LarkspurTransport", "TestKit",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "AFNetworkingTests",
      dependencies: [
        "AFNetworking", "AFNetworkingXML", "Larkspur", "LarkspurTestServer", "TestHelper", "TestKit",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "ZipArchiveTests",
      dependencies: [
        "AFNetworking", "CAllocations", "Larkspur", "LarkspurIO", "LarkspurTestServer", "TestKit", "ZipArchive",
      ],
      swiftSettings: testSettings),
    .testTarget(name: "FuzzTests", dependencies: ["FuzzOracles"], swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurCommandTests",
      dependencies: [
        "LarkspurCommand", "LarkspurDemonstration", "CLarkspurOpenSSL", "Larkspur", "LarkspurBytes", "LarkspurConsole",
        "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTestServer", "LarkspurTransfers", "LarkspurTransport",
        "TestKit",
      ],
      swiftSettings: testSettings),
    .testTarget(
      name: "LarkspurTestServerTests",
      dependencies: [
        "CLarkspurOpenSSL", "LarkspurBytes", "LarkspurCoding", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS",
        "LarkspurTestServer", "TestKit",
      ],
      swiftSettings: testSettings),
  ]
)

if let wantedTests {
  package.targets.removeAll { $0.type == .test && !wantedTests.contains($0.name) }
}

if includesBenchmarks {
  // As small programs are shipped: LLVM's linker packs the addresses that the dynamic linker adjusts.
  let small: [LinkerSetting] = [
    .unsafeFlags([
      "-use-ld=lld", "-Xlinker", "--no-export-dynamic", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
    ])
  ]
  package.targets += [
    .target(name: "BenchmarkUsage", path: "Benchmarks/usage", swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-micro", dependencies: ["CAllocations", "LarkspurBytes", "LarkspurHTTP"],
      path: "Benchmarks/micro-benchmarks",
      swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-bench",
      dependencies: [
        "BenchmarkUsage", "LarkspurBytes", "LarkspurHTTP", "LarkspurIO", "LarkspurTLS", "LarkspurTransport",
      ],
      path: "Benchmarks/larkspur-bench", swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-session-bench", dependencies: ["BenchmarkUsage", "Larkspur"], path: "Benchmarks/session-bench",
      swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-client-bench", dependencies: ["BenchmarkUsage", "LarkspurClient"],
      path: "Benchmarks/client-bench", swiftSettings: testSettings),
    // The smallest programs: their size and their start are measured.
    .executableTarget(
      name: "larkspur-fetch", dependencies: ["LarkspurClient"], path: "Benchmarks/fetch", swiftSettings: testSettings,
      linkerSettings: small),
    // The example, whose size is checked as well. By itself it is a package of its own.
    .executableTarget(
      name: "save", dependencies: ["LarkspurClient"], path: "Examples/Save/Sources/save", swiftSettings: testSettings,
      linkerSettings: small),
    .executableTarget(
      name: "larkspur-fetch-session", dependencies: ["Larkspur"], path: "Benchmarks/fetch-session",
      swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-cache-bench", dependencies: ["Larkspur"], path: "Benchmarks/cache-bench",
      swiftSettings: testSettings),
    .executableTarget(
      name: "larkspur-manager-bench", dependencies: ["AFNetworking", "BenchmarkUsage"],
      path: "Benchmarks/manager-bench", swiftSettings: testSettings),
  ]
}

if includesFuzzers {
  let fuzzing: [SwiftSetting] = [.unsafeFlags(["-sanitize=fuzzer,address", "-parse-as-library"])]
  // Coverage has to be seen in all that is fuzzed, not only in the fuzz targets themselves.
  for target in package.targets where target.type == .regular && target.swiftSettings != nil {
    target.swiftSettings? += fuzzing
  }
  for target in package.targets where target.name == "CLarkspurOpenSSL" {
    target.cSettings = [.unsafeFlags(["-fsanitize=fuzzer-no-link,address"])]
  }
  package.targets.append(.target(name: "FuzzDriver", path: "Fuzz/Driver", swiftSettings: testSettings + fuzzing))
  for name in [
    "ResponseParser", "ChunkedBody", "ConnectionSession", "TLSEngine", "ContentCoding", "SOCKSReplies", "WebSocket",
    "EventStream", "ArchiveName", "ImageHead", "TransferRecord",
    "DownloadRecord",
  ] {
    package.targets.append(
      .executableTarget(
        name: "Fuzz\(name)", dependencies: ["FuzzDriver", "FuzzOracles"], path: "Fuzz/\(name)",
        swiftSettings: testSettings + fuzzing, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]))
  }
}
