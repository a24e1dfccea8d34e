// swift-tools-version: 6.2
// The observers of the page "Observing", against the packages that they are for.

import PackageDescription

let package = Package(
  name: "observing",
  dependencies: [
    .package(path: "../larkspur"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.5.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.2.0"),
  ],
  targets: [
    .target(
      name: "Observers",
      dependencies: [
        .product(name: "Larkspur", package: "larkspur"), .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "Tracing", package: "swift-distributed-tracing"),
      ]),
    .executableTarget(
      name: "observing-program",
      dependencies: [
        "Observers", .product(name: "InMemoryLogging", package: "swift-log"),
        .product(name: "MetricsTestKit", package: "swift-metrics"),
        .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
      ],
      path: "Sources/program"),
  ]
)
